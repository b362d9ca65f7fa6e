//! Calls that failed or that a policy refused, as their results or the calls themselves record it. Many tools return their errors
//! as text with the status `ok`, and a call that failed this way did nothing.

use counterproof_artifact::{EventBody, ToolCall, ToolStatus};
use serde_json::{Map, Value};

use super::LoadedAnswer;
use super::payload::Payload;
use crate::values::text;

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

/// True for an object with a field that only an error sets.
fn has_error_field(fields: &Map<String, Value>) -> bool {
    // A number is not an error: `error` may be a measure.
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

/// The field with the decision about a refused call.
const DECISION: &str = "decision";

/// The annotation of a call with what the rules would have decided in observe mode, and the action that does not refuse.
const OBSERVED: &str = "observed";
const ALLOW: &str = "ALLOW";

/// Maximum number of characters of a rule and of a reason in a message.
const RULE_CHARS: usize = 80;
const SUMMARY_CHARS: usize = 120;

/// Describes who refused a call and why, if an event states that: `refused by the rule limit (too many)`.
pub(crate) fn refusal(loaded: &LoadedAnswer, index: usize) -> Option<String> {
    let decision = match &loaded.answer.events[index].body {
        EventBody::ToolResult(result) if result.status == ToolStatus::Error => match loaded.payload(index)? {
            Payload::Object(fields) => fields.get(DECISION)?.as_object()?,
            Payload::Text(_) | Payload::Other(_) => return None,
        },
        EventBody::ToolCall(call) => call.extra.get(DECISION)?.as_object()?,
        _ => return None,
    };
    // A result of a tool can have a field of this name, too. A decision of a policy states at least one of these.
    let is_of_policy = ["rule_id", "reason_code"].iter().any(|name| decision.get(*name).is_some_and(Value::is_string));
    is_of_policy.then(|| describe(decision))
}

/// Returns the calls that were allowed only because the policy observes, each by its position and its description.
pub(crate) fn observed_refusals(loaded: &LoadedAnswer) -> impl Iterator<Item = (usize, String)> {
    let events = loaded.answer.events.iter().enumerate();
    events.filter_map(|(index, event)| Some((index, observed_refusal(event.tool_call()?)?)))
}

fn observed_refusal(call: &ToolCall) -> Option<String> {
    let observed = call.annotations.as_ref()?.get(OBSERVED)?.as_object()?;
    let field = |name: &str| observed.get(name)?.as_str().filter(|value| !value.is_empty());
    field("action").filter(|action| *action != ALLOW)?;
    let tool = text::one_line(&call.tool, RULE_CHARS);
    Some(match field("rule_id").or_else(|| field("reason_code")) {
        Some(rule) => format!("{tool} ({})", text::one_line(rule, RULE_CHARS)),
        None => tool,
    })
}

fn describe(decision: &Map<String, Value>) -> String {
    let field = |name: &str, chars| {
        let value = decision.get(name)?.as_str().filter(|value| !value.is_empty())?;
        Some(text::one_line(value, chars))
    };
    // The guard also refuses calls without a rule, such as those that it cannot read.
    let rule = field("rule_id", RULE_CHARS).map(|rule| format!("refused by the rule {rule}"));
    let refused = rule.unwrap_or_else(|| "refused".to_owned());
    match field("summary", SUMMARY_CHARS).or_else(|| field("reason_code", RULE_CHARS)) {
        Some(reason) => format!("{refused} ({reason})"),
        None => refused,
    }
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
