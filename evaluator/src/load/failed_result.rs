//! Failed tool results: those with the status `error`, and those whose content reports an error although the status is `ok`.
//! Many tools return their errors as text, and a call that failed this way did nothing.

use counterproof_artifact::{EventBody, ToolStatus};
use serde_json::{Map, Value};

use super::LoadedAnswer;
use super::payload::Payload;

/// An error that is reported as text is named within this many bytes. A log or a document may mention one further down.
const NAMED_WITHIN: usize = 120;

/// True for the result of a tool that failed.
pub fn has_failed(loaded: &LoadedAnswer, index: usize) -> bool {
    match &loaded.answer.events[index].body {
        EventBody::ToolResult(result) => {
            result.status == ToolStatus::Error || loaded.payload(index).is_some_and(reports_error)
        }
        _ => false,
    }
}

/// True for a content that reports an error.
fn reports_error(payload: Payload<'_>) -> bool {
    match payload {
        Payload::Text(text) => names_error(text),
        Payload::Object(fields) => has_error_field(fields),
        Payload::Other(_) => false,
    }
}

/// True for a text that names an error at its start: `Error: …`, `ValueError: …`, `result = "Error: …"`.
fn names_error(text: &str) -> bool {
    let bytes = text.trim_start().as_bytes();
    let start = &bytes[..bytes.len().min(NAMED_WITHIN)];
    start.windows(6).any(|window| window[..5].eq_ignore_ascii_case(b"error") && window[5] == b':')
}

/// True for an object with a field that only an error sets. A number is no error: `error` may be a measure.
fn has_error_field(fields: &Map<String, Value>) -> bool {
    let is_set = |value: &Value| match value {
        Value::Null | Value::Number(_) => false,
        Value::Bool(flag) => *flag,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    };
    // Comparing the few names of a result costs less than looking each name up.
    fields.iter().any(|(name, value)| match name.as_str() {
        "error" | "errors" | "is_error" | "isError" => is_set(value),
        "success" | "ok" => *value == Value::Bool(false),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_are_read_from_texts_and_objects() {
        for text in ["Error: not found", "# var_0 = \"Error: no user\"", "ValueError: bad", "  error: x"] {
            assert!(names_error(text), "{text}");
        }
        let far_down = format!("{} error: x", "All is well. ".repeat(20));
        for text in ["no errors", "Error rates fell", "", far_down.as_str()] {
            assert!(!names_error(text), "{text}");
        }
        let reports = |value: Value| reports_error(Payload::Object(value.as_object().unwrap()));
        for value in [json!({"error": "no"}), json!({"ok": false}), json!({"isError": true}), json!({"errors": [1]})] {
            assert!(reports(value.clone()), "{value}");
        }
        for value in [json!({"error": null}), json!({"error": 0.5}), json!({"errors": []}), json!({"status": "failed"})]
        {
            assert!(!reports(value.clone()), "{value}");
        }
    }
}
