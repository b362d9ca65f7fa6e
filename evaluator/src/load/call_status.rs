//! Calls that failed or that a policy refused, as their results or the calls themselves record it. Many tools return their errors
//! as text with the status `ok`, and a call that failed this way did nothing.

use std::collections::HashMap;

use counterproof_artifact::{EventBody, RiskLevel, ToolCall, ToolResult, ToolStatus};
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
            result.status == ToolStatus::Error
                || loaded.silent_failures.contains_key(&index)
                || loaded.payload(index).is_some_and(reports_error)
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

/// Phrases with which a write says that it did nothing.
const REFUSALS: [&str; 17] = [
    "could not",
    "couldn't",
    "unable to",
    "not able to",
    "failed",
    "declined",
    "denied",
    "rejected",
    "refused",
    "not allowed",
    "not permitted",
    "not found",
    "does not exist",
    "timeout",
    "timed out",
    "try again",
    "try later",
];

/// Phrases that are a success for tools whose name has the stem: `deny_claim` did its task if the claim is denied.
const TASKS: [(&str, &str); 5] =
    [("declined", "declin"), ("denied", "deny"), ("rejected", "reject"), ("refused", "refus"), ("timeout", "timeout")];

/// Words before a phrase that turn it around: `0 failed`, `was not declined`.
const NEGATIONS: [&str; 6] = ["0", "no", "not", "never", "none", "without"];

/// The fields in which an object says how a write ended. Other fields describe the thing that was written, whose earlier
/// payment may have been declined.
const OUTCOMES: [&str; 11] =
    ["status", "state", "outcome", "result", "response", "message", "msg", "detail", "details", "info", "text"];

/// A write answers in a few sentences. Longer texts are documents, which may mention anything.
const SENTENCES: usize = 1_000;

/// Maximum number of characters of the words of a silent failure in a message.
const WORDS_CHARS: usize = 120;

/// Returns the results of writes that say in words that the write did not happen, although nothing marks them as errors: by
/// the index of the event, with the words.
pub(super) fn silent_failures(loaded: &LoadedAnswer) -> HashMap<usize, String> {
    let refused = unmarked_writes(loaded).filter_map(|(index, call)| {
        let words = match loaded.payload(index)? {
            Payload::Text(text) => match serde_json::from_str(text) {
                Ok(Value::Object(fields)) => refusal_among(&fields, &call.tool).map(str::to_owned),
                _ => refusal_in(text, &call.tool).map(str::to_owned),
            },
            Payload::Object(fields) => refusal_among(fields, &call.tool).map(str::to_owned),
            Payload::Other(_) => None,
        };
        Some((index, text::one_line(&words?, WORDS_CHARS)))
    });
    refused.collect()
}

/// Adds the results of writes that are a text where the same tool returned only objects on baseline: an agent that parses the
/// result gets none, and most often the text is an apology.
pub(crate) fn add_changed_form(baseline: &LoadedAnswer, new: &mut LoadedAnswer) {
    let texts: Vec<_> = unmarked_writes(new)
        .filter_map(|(index, call)| match new.payload(index)? {
            Payload::Text(text) if !is_structured(text) => Some((index, call.tool.clone(), text.to_owned())),
            _ => None,
        })
        .collect();
    for (index, tool, words) in texts {
        let mut before = unmarked_writes(baseline).filter(|(_, call)| call.tool == tool).peekable();
        let is_object = |index: usize| match baseline.payload(index) {
            Some(Payload::Object(_)) => true,
            Some(Payload::Text(text)) => is_structured(text),
            Some(Payload::Other(_)) | None => false,
        };
        if before.peek().is_some() && before.all(|(index, _)| is_object(index)) {
            new.silent_failures.entry(index).or_insert_with(|| text::one_line(&words, WORDS_CHARS));
        }
    }
}

/// The results of writes that nothing marks as errors, with their calls.
fn unmarked_writes(loaded: &LoadedAnswer) -> impl Iterator<Item = (usize, &ToolCall)> {
    let events = &loaded.answer.events;
    events.iter().enumerate().filter_map(|(index, event)| {
        let EventBody::ToolResult(result) = &event.body else { return None };
        let call = loaded.index.call(events, &result.call_id).filter(|call| is_write(loaded, call, result))?;
        (!has_failed(loaded, index)).then_some((index, call))
    })
}

/// Whether a call carries out an action, or states high risk. Many producers name no action, so the tool of one is enough.
fn is_write(loaded: &LoadedAnswer, call: &ToolCall, result: &ToolResult) -> bool {
    call.action_id.is_some()
        || result.action_id.is_some()
        || call.risk_level == Some(RiskLevel::High)
        || loaded.answer.proposed_actions.iter().any(|action| action.tool_name == call.tool)
}

/// Whether a text is an object or a list that is written as JSON.
fn is_structured(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[']) && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// The words of an object in which it says that a write did not happen.
fn refusal_among<'a>(fields: &'a Map<String, Value>, tool: &str) -> Option<&'a str> {
    fields.iter().filter(|(name, _)| OUTCOMES.contains(&name.to_ascii_lowercase().as_str())).find_map(|(_, value)| {
        match value {
            Value::String(text) => refusal_in(text, tool),
            // `{"result": {"status": "declined"}}`
            Value::Object(inner) => refusal_among(inner, tool),
            _ => None,
        }
    })
}

/// The text, if it says that a write did not happen.
fn refusal_in<'a>(text: &'a str, tool: &str) -> Option<&'a str> {
    if text.len() > SENTENCES {
        return None;
    }
    let lower = text.to_lowercase();
    let tool = tool.to_lowercase();
    let is_task = |phrase: &str| TASKS.iter().any(|(success, stem)| *success == phrase && tool.contains(stem));
    let says = |phrase: &&str| {
        lower.match_indices(*phrase).any(|(at, _)| {
            let (before, after) = (&lower[..at], &lower[at + phrase.len()..]);
            let is_word = !before.ends_with(char::is_alphanumeric) && !after.starts_with(char::is_alphanumeric);
            let previous = before.split(|c: char| !c.is_alphanumeric()).rfind(|word| !word.is_empty());
            is_word && previous.is_none_or(|word| !NEGATIONS.contains(&word))
        })
    };
    REFUSALS.iter().filter(|phrase| !is_task(phrase)).any(says).then_some(text)
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
    fn a_write_says_in_words_that_it_did_not_happen() {
        let refused = |text: &str| refusal_in(text, "refund_order").is_some();
        for text in [
            "We could not process the refund.",
            "Card declined",
            "Permission DENIED for this order",
            "timeout",
            "The service is busy. Please try again later.",
            "Refund failed: no funds",
            "Order 8098621303 not found",
        ] {
            assert!(refused(text), "{text}");
        }
        let long = format!("{} declined", "The order holds many items. ".repeat(50));
        for text in ["Refunded 50", "3 refunded, 0 failed", "The card was not declined", "", long.as_str()] {
            assert!(!refused(text), "{text}");
        }
        assert!(refusal_in("Claim denied", "deny_claim").is_none(), "that is what the tool is for");
    }

    #[test]
    fn an_object_says_so_in_the_fields_for_its_outcome() {
        let refused = |value: Value| refusal_among(value.as_object().unwrap(), "refund_order").is_some();
        for value in [json!({"status": "declined"}), json!({"result": {"message": "Could not refund"}})] {
            assert!(refused(value.clone()), "{value}");
        }
        for value in [json!({"status": "refunded", "reason": "payment declined"}), json!({"items": ["timeout"]})] {
            assert!(!refused(value.clone()), "{value}");
        }
    }

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
