//! The kind of a document, and the check against the schema of that kind. Schema errors get our own messages, because those
//! of the validator quote complete values. The compiled schemas themselves are in `compiled_schema`.

use std::fmt::Write as _;

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::Value;

use crate::Code;
use crate::excerpt::quote;
use crate::finding::Findings;
use counterproof_artifact::schema::Kind;

/// Parts of schemas that a rule checks under its own code.
const COVERED_BY_RULES: [&str; 1] = ["/$defs/bodyIsKept/"];

/// The kind that a document declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Declared {
    /// A document of this contract.
    Known(Kind),
    /// An unknown version of one of its documents.
    UnknownVersion,
    /// A format from before the contract had versions, with its description.
    Older(&'static str),
    /// Not a document of the contract.
    Foreign,
}

/// Reads the declared kind of a document.
pub(crate) fn declared(document: &Value) -> Declared {
    match document.get("schema_version").map(|version| version.as_str().unwrap_or_default()) {
        None => older_shape(document).map_or(Declared::Foreign, Declared::Older),
        Some(version) => match version.parse() {
            Ok(kind) => Declared::Known(kind),
            Err(_) if is_other_version(version) => Declared::UnknownVersion,
            Err(_) => Declared::Foreign,
        },
    }
}

/// True for another version of a known document, such as `case.v2`; false for `invoice.v1`.
fn is_other_version(text: &str) -> bool {
    let Some((name, version)) = text.rsplit_once(".v") else { return false };
    Kind::ALL.iter().any(|kind| kind.schema_version().rsplit_once(".v").is_some_and(|(known, _)| known == name))
        && version.starts_with(|c: char| c.is_ascii_digit())
}

/// Recognises the formats that runners and evaluators wrote before the contract had versions.
fn older_shape(document: &Value) -> Option<&'static str> {
    let has = |keys: &[&str]| keys.iter().all(|key| document.get(key).is_some());
    if document["runner_failure"]["type"] == "runner_fetch_failure" {
        return Some("a runner failure in the format before `case.v1`");
    }
    if has(&["run_id", "versions"]) || has(&["run_id", "started_at", "runner"]) {
        return Some("a `run.json` in the format before `run.v1`");
    }
    if has(&["case_id", "version", "final_output"]) && !has(&["status"]) {
        return Some("an agent's response in the format before `case.v1`");
    }
    if document["kind"].as_str().is_some_and(|kind| kind.starts_with("runner_") && kind.contains("_capture")) {
        return Some("the metadata of a body in the format before `failure-meta.v1`");
    }
    let first = document.get(0)?;
    (first.get("case_id").is_some() && first.get("assertions").is_some())
        .then_some("an `evaluation.json` in the format before `evaluation.v1`")
}

/// Checks a document against the schema of the expected kind. Returns false where it is another kind of document, to which
/// no further rule applies.
pub(crate) fn check(expected: Kind, document: &Value, findings: &mut Findings) -> bool {
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
            let message = format!("this is a {kind} document, but a {expected} document is expected here");
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
                findings.omit(1);
            } else {
                report(expected, &error, findings);
            }
        }
    }
    true
}

fn report(kind: Kind, error: &ValidationError<'_>, findings: &mut Findings) {
    let schema_path = error.schema_path().as_str();
    if COVERED_BY_RULES.iter().any(|part| schema_path.contains(part)) {
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
            let message = format!("the value violates `{}` of the schema", other.keyword());
            (Code::WrongValue, message, format!("a value that matches the {kind} schema"))
        }
    };
    findings.add(code, pointer, message, expected);
}

/// Returns the description of a field in the violated part of the schema or the nearest part around it.
fn description<'s>(schema: &'s Value, schema_path: &str, field: &str) -> Option<&'s str> {
    let mut path = schema_path;
    while let Some((parent, _)) = path.rsplit_once('/') {
        let text = schema.pointer(parent).and_then(|around| around["properties"][field]["description"].as_str());
        if text.is_some() {
            return text;
        }
        path = parent;
    }
    None
}

fn same_type(a: &Value, b: &Value) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b)
}

/// Describes a value in bounded length.
pub(super) fn describe(value: &Value) -> String {
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
