//! What all protocols share on the way from bytes to an artifact: reading the body as an object, and holding the document
//! made of it against the contract. What the object means is up to the protocol.

use counterproof_artifact::Case;
use counterproof_validation::{Code, validate_case};
use serde_json::{Map, Value};

use super::Answering;
use crate::failure::{Fault, Reason, Violation};

/// Levels of nesting that every reader of the artifact takes.
pub(super) const MAX_DEPTH: usize = 127;

/// Reads a body as a JSON object.
pub(super) fn object(body: &[u8]) -> Result<Map<String, Value>, Fault> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(Fault::new(Reason::EmptyBody, "the response has no body"));
    }
    let text = std::str::from_utf8(body).map_err(|error| {
        Fault::new(Reason::InvalidUtf8, format!("the body is not UTF-8 from byte {} on", error.valid_up_to()))
    })?;
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(other) => {
            let message = format!("the response is {}, not an object", kind_of(&other));
            Err(Fault::new(Reason::NotAnObject, message))
        }
        Err(error) => Err(Fault::new(Reason::NotJson, format!("the body is not JSON: {error}"))),
    }
}

/// The envelope of an answer, which the runner vouches for; the agent's fields go behind it.
pub(super) fn envelope(answering: Answering<'_>) -> Map<String, Value> {
    let mut document = Map::new();
    document.insert("schema_version".to_owned(), "case.v1".into());
    document.insert("case_id".to_owned(), answering.case_id.as_str().into());
    document.insert("version".to_owned(), answering.side.as_str().into());
    document.insert("status".to_owned(), "ok".into());
    document
}

/// Reads a whole document as an artifact. One rule is left to the evaluator: evidence that does not resolve is what the
/// agent claims, and it is the comparison that says what the claim is worth.
pub(super) fn artifact(document: Map<String, Value>) -> Result<Case, Fault> {
    let document = Value::Object(document);
    // What was set aside lies deeper than it came, and no reader takes more levels than these.
    if depth(&document) > MAX_DEPTH {
        return Err(Fault::new(Reason::NotJson, format!("the body is nested more than {MAX_DEPTH} deep")));
    }
    let violations: Vec<_> = validate_case(&document)
        .into_iter()
        .filter(|finding| finding.code != Code::EvidenceUnresolved)
        .map(|finding| Violation {
            code: finding.code.as_str(),
            pointer: finding.pointer,
            message: finding.message,
            expected: finding.expected,
        })
        .collect();
    if !violations.is_empty() {
        let message = format!("the answer breaks the contract in {} places", violations.len());
        return Err(Fault { violations, ..Fault::new(Reason::ContractViolated, message) });
    }
    serde_json::from_value(document)
        .map_err(|error| Fault::new(Reason::ContractViolated, format!("the answer breaks the contract: {error}")))
}

/// A value of the agent's within a message.
pub(super) fn bounded(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// How many arrays and objects lie within one another.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// The JSON type of a value in words.
pub(super) const fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
