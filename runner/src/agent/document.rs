//! Steps that all protocols share: parsing a body as a JSON object, and validating the resulting artifact.

use counterproof_artifact::Case;
use counterproof_validation::{Code, validate_case};
use serde_json::{Map, Value};

use super::AnswerContext;
use crate::failure::{Fault, Reason, Violation};

/// The nesting depth that every reader of an artifact supports.
pub(super) const MAX_DEPTH: usize = 127;

/// Parses a body as a JSON object.
pub(super) fn object(body: &[u8]) -> Result<Map<String, Value>, Fault> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(Fault::new(Reason::EmptyBody, "the response has no body"));
    }
    let text = std::str::from_utf8(body).map_err(|error| {
        Fault::new(Reason::InvalidUtf8, format!("the body is not UTF-8 at byte {}", error.valid_up_to()))
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

/// Returns the envelope of an answer, which the runner writes. The agent's fields follow it.
pub(super) fn envelope(context: AnswerContext<'_>) -> Map<String, Value> {
    let mut document = Map::new();
    document.insert("schema_version".to_owned(), "case.v1".into());
    document.insert("case_id".to_owned(), context.case_id.as_str().into());
    document.insert("version".to_owned(), context.side.as_str().into());
    document.insert("status".to_owned(), "ok".into());
    document
}

/// Validates a document and converts it into an artifact. Unresolved evidence is accepted: it is a claim of the agent that the
/// evaluator assesses.
pub(super) fn artifact(document: Map<String, Value>) -> Result<Case, Fault> {
    let document = Value::Object(document);
    // Fields that were set aside are one level deeper than in the answer.
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
        let message = format!("the answer violates the contract in {} places", violations.len());
        return Err(Fault { violations, ..Fault::new(Reason::ContractViolated, message) });
    }
    serde_json::from_value(document)
        .map_err(|error| Fault::new(Reason::ContractViolated, format!("the answer violates the contract: {error}")))
}

/// Truncates a value of the agent for a message.
pub(super) fn bounded(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns the nesting depth of arrays and objects.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Returns the JSON type of a value with its article.
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
