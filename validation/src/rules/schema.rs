//! The first question to a document: which kind is it, and does it have that kind's shape? What the schema finds is said in
//! our own words, since the validator's quote whole values.

use std::fmt::Write as _;

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::Value;

use super::Code;
use super::excerpt::quote;
use super::finding::Findings;
use super::quick;
use counterproof_artifact::schema::Kind;

/// Parts of schemas that a rule repeats with a code of its own.
const SAID_BY_A_RULE: [&str; 1] = ["/$defs/bodyIsKept/"];

/// What a document says that it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Declared {
    /// A document of this contract.
    Known(Kind),
    /// A version of one of its documents that is not known here.
    UnknownVersion,
    /// A shape from before the contract had versions, in words.
    Older(&'static str),
    /// Nothing that concerns us.
    Foreign,
}

/// Reads what a document says that it is.
pub(super) fn declared(document: &Value) -> Declared {
    match document.get("schema_version").map(|version| version.as_str().unwrap_or_default()) {
        None => older_shape(document).map_or(Declared::Foreign, Declared::Older),
        Some(version) => match version.parse() {
            Ok(kind) => Declared::Known(kind),
            Err(_) if is_other_version(version) => Declared::UnknownVersion,
            Err(_) => Declared::Foreign,
        },
    }
}

/// `case.v2` is another version of a document that we know; `invoice.v1` is not.
fn is_other_version(text: &str) -> bool {
    let Some((name, version)) = text.rsplit_once(".v") else { return false };
    Kind::ALL.iter().any(|kind| kind.schema_version().rsplit_once(".v").is_some_and(|(known, _)| known == name))
        && version.starts_with(|c: char| c.is_ascii_digit())
}

/// The shapes that runners and evaluators wrote before the contract had versions.
fn older_shape(document: &Value) -> Option<&'static str> {
    let has = |keys: &[&str]| keys.iter().all(|key| document.get(key).is_some());
    if document["runner_failure"]["type"] == "runner_fetch_failure" {
        return Some("a runner failure as it was written before `case.v1`");
    }
    if has(&["run_id", "versions"]) || has(&["run_id", "started_at", "runner"]) {
        return Some("a `run.json` as it was written before `run.v1`");
    }
    if has(&["case_id", "version", "final_output"]) && !has(&["status"]) {
        return Some("an agent's response as it was written before `case.v1`");
    }
    if document["kind"].as_str().is_some_and(|kind| kind.starts_with("runner_") && kind.contains("_capture")) {
        return Some("the metadata of a body as they were written before `failure-meta.v1`");
    }
    let first = document.get(0)?;
    (first.get("case_id").is_some() && first.get("assertions").is_some())
        .then_some("an `evaluation.json` as it was written before `evaluation.v1`")
}

/// Holds a document against the kind that its place calls for. False where it is another document altogether, so that
/// nothing more can be asked of it.
pub(super) fn check(expected: Kind, document: &Value, findings: &mut Findings) -> bool {
    if expected == Kind::Case && quick::is_answer(document) {
        return true;
    }
    let wanted = || format!("`schema_version` `{expected}`");
    let version = || quote(document["schema_version"].as_str().unwrap_or_default());
    match declared(document) {
        Declared::Older(shape) => {
            findings.add(Code::OlderFormat, "", format!("this is {shape}"), wanted());
            return false;
        }
        Declared::UnknownVersion => {
            let message = format!("`schema_version` {} is not known", version());
            findings.add(Code::UnknownSchemaVersion, "/schema_version", message, wanted());
            return false;
        }
        Declared::Known(kind) if kind != expected => {
            let message = format!("this is a {kind} document, and its place is for {expected}");
            findings.add(Code::WrongDocument, "/schema_version", message, wanted());
            return false;
        }
        Declared::Foreign if document.get("schema_version").is_some_and(Value::is_string) => {
            let message = format!("`schema_version` {} is not known", version());
            findings.add(Code::UnknownSchemaVersion, "/schema_version", message, wanted());
            return false;
        }
        Declared::Known(_) | Declared::Foreign => {}
    }
    let validator = crate::compiled_schema::validator(expected);
    if !validator.is_valid(document) {
        for error in validator.iter_errors(document) {
            if findings.is_full() {
                findings.leave_out(1);
            } else {
                report(expected, &error, findings);
            }
        }
    }
    true
}

fn report(kind: Kind, error: &ValidationError<'_>, findings: &mut Findings) {
    let schema_path = error.schema_path().as_str();
    if SAID_BY_A_RULE.iter().any(|part| schema_path.contains(part)) {
        return;
    }
    let pointer = error.instance_path().as_str();
    let name = || quote(pointer.rsplit('/').next().unwrap_or_default());
    let about = |field: &str| description(kind.document(), schema_path, field);
    let value = || describe(error.instance());
    let (code, message, expected) = match error.kind() {
        ValidationErrorKind::Required { property } => {
            let field = property.as_str().unwrap_or_default();
            let expected = about(field).map_or_else(|| format!("`{field}`"), |text| format!("`{field}`: {text}"));
            (Code::MissingField, format!("the field `{field}` is missing"), expected)
        }
        ValidationErrorKind::FalseSchema => {
            let field = pointer.rsplit('/').next().unwrap_or_default();
            let expected = about(field).map_or_else(|| "no such field here".to_owned(), str::to_owned);
            (Code::UnexpectedField, format!("the field {} must not be here", name()), expected)
        }
        ValidationErrorKind::Type { kind: TypeKind::Single(expected) } => {
            (Code::WrongType, value(), with_article(expected.as_str()).to_owned())
        }
        ValidationErrorKind::Type { kind: TypeKind::Multiple(expected) } => {
            let expected: Vec<&str> = expected.iter().map(|expected| with_article(expected.as_str())).collect();
            (Code::WrongType, value(), expected.join(" or "))
        }
        ValidationErrorKind::Enum { options } => {
            let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
            let code = if options.iter().any(|option| same_type(option, error.instance())) {
                Code::WrongValue
            } else {
                Code::WrongType
            };
            let mut expected = String::from("one of ");
            for (index, option) in options.iter().enumerate() {
                let _ =
                    write!(expected, "{}`{}`", if index == 0 { "" } else { ", " }, option.as_str().unwrap_or("null"));
            }
            (code, value(), expected)
        }
        ValidationErrorKind::Constant { expected_value } => {
            let code = if same_type(expected_value, error.instance()) { Code::WrongValue } else { Code::WrongType };
            let expected = expected_value.as_str().map_or_else(|| expected_value.to_string(), str::to_owned);
            (code, value(), format!("`{expected}`"))
        }
        ValidationErrorKind::Pattern { .. } => (Code::WrongValue, value(), "64 hexadecimal digits".to_owned()),
        ValidationErrorKind::Minimum { limit } => (Code::WrongValue, value(), format!("at least {limit}")),
        ValidationErrorKind::Maximum { limit } => (Code::WrongValue, value(), format!("at most {limit}")),
        ValidationErrorKind::PropertyNames { error } => {
            let message = format!("the key {} is not allowed", describe(error.instance()));
            (Code::WrongValue, message, "one of the keys that the schema lists".to_owned())
        }
        other => {
            let message = format!("the value breaks `{}` of the schema", other.keyword());
            (Code::WrongValue, message, format!("what `counterproof schema {kind}` says"))
        }
    };
    findings.add(code, pointer, message, expected);
}

/// What the schema says about a field, at the place that was broken or the nearest around it.
fn description<'s>(schema: &'s Value, schema_path: &str, field: &str) -> Option<&'s str> {
    let mut place = schema_path;
    while let Some((parent, _)) = place.rsplit_once('/') {
        let text = schema.pointer(parent).and_then(|around| around["properties"][field]["description"].as_str());
        if text.is_some() {
            return text;
        }
        place = parent;
    }
    None
}

fn same_type(a: &Value, b: &Value) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b)
}

/// What stands there, in a few words, however large it is.
fn describe(value: &Value) -> String {
    match value {
        Value::Null => "the value is null".to_owned(),
        Value::Bool(value) => format!("the value is `{value}`"),
        Value::Number(number) => format!("the value is {number}"),
        Value::String(text) if text.is_empty() => "the value is an empty string".to_owned(),
        Value::String(text) => format!("the value is the string {}", quote(text)),
        Value::Array(items) => format!("the value is an array of {}", items.len()),
        Value::Object(_) => "the value is an object".to_owned(),
    }
}

fn with_article(kind: &str) -> &'static str {
    match kind {
        "array" => "an array",
        "boolean" => "true or false",
        "integer" => "a whole number",
        "null" => "null",
        "number" => "a number",
        "object" => "an object",
        _ => "a string",
    }
}
