//! The step of a call: its tool, its arguments, and what the policy adds to it.

use counterproof_artifact::{Extra, ToolCall};
use serde_json::{Map, Value, json};

use super::preview::Preview;
use super::recorded_call::RecordedCall;

/// The tool of a call without a name.
const UNNAMED: &str = "unknown";

/// Longest name of a server or a tool, in bytes.
const MAX_NAME_BYTES: usize = 512;

/// Builds the step of a call.
pub(super) fn tool_call(call: &RecordedCall, call_id: String) -> ToolCall {
    ToolCall {
        call_id,
        action_id: None,
        tool: tool(call),
        args: args(call),
        risk_level: None,
        risk_tags: None,
        annotations: Some(annotations(call)).filter(|notes| !notes.is_empty()),
        extra: refusal_without_end(call),
    }
}

/// Returns `SERVER.TOOL`. Tools of two servers can have one name, and a step must have the same name whichever servers run.
fn tool(call: &RecordedCall) -> String {
    let tool = cut(call.text("tool_name").unwrap_or(UNNAMED));
    match call.text("server_name") {
        Some(server) => format!("{}.{tool}", cut(server)),
        None => tool,
    }
}

fn cut(name: &str) -> String {
    match &name[..name.floor_char_boundary(MAX_NAME_BYTES)] {
        whole if whole.len() == name.len() => whole.to_owned(),
        part => format!("{part}…"),
    }
}

/// Returns the arguments. If the preview does not have all of them, returns an object with their hash.
fn args(call: &RecordedCall) -> Map<String, Value> {
    let preview = Preview::new(call.field("preview").unwrap_or(&Value::Null), "args_preview");
    preview.object().unwrap_or_else(|| preview.part(call.text("args_hash").map(|hash| ("sha256", json!(hash)))))
}

/// Returns what the policy adds to the call: its tags, and what its rules would have decided otherwise in observe mode. The agent does
/// not see it, so it is not compared.
fn annotations(call: &RecordedCall) -> Map<String, Value> {
    let tags = call.field("tags").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let tags: Vec<_> = tags.iter().filter_map(Value::as_str).collect();
    let mut notes = Map::new();
    if !tags.is_empty() {
        notes.insert("tags".to_owned(), json!(tags));
    }
    let observed = call.decision().map(|decision| &decision["observed"]).filter(|observed| is_refusal(observed));
    if let Some(observed) = observed.and_then(Value::as_object) {
        let texts = ["action", "rule_id", "reason_code"].into_iter().filter_map(|name| text_field(observed, name));
        notes.insert("observed".to_owned(), texts.collect());
    }
    notes
}

/// Returns the decision about a refused call that has no end: no result can show it.
fn refusal_without_end(call: &RecordedCall) -> Extra {
    let decision = call.decision().filter(|decision| call.end().is_none() && is_refusal(decision));
    Extra::from_iter(decision.map(|decision| ("decision".to_owned(), Value::Object(decision_facts(decision)))))
}

/// Returns true if a call was not forwarded.
pub(super) fn is_refusal(decision: &Value) -> bool {
    decision["action"].as_str().is_some_and(|action| action != "ALLOW")
}

/// Returns the parts of a decision that do not differ between equal runs: all but times and the policy.
pub(super) fn decision_facts(decision: &Value) -> Map<String, Value> {
    let of = |value: &Value, names: &[&str]| -> Map<String, Value> {
        let fields = value.as_object();
        names.iter().filter_map(|name| text_field(fields?, name)).collect()
    };
    let mut facts = of(decision, &["action", "rule_id"]);
    facts.extend(of(&decision["explain"], &["reason_code", "summary"]));
    facts.extend(of(&decision["hint"], &["hint_text"]).into_iter().map(|(_, text)| ("hint".to_owned(), text)));
    facts
}

fn text_field(fields: &Map<String, Value>, name: &str) -> Option<(String, Value)> {
    let text = fields.get(name)?.as_str()?;
    Some((name.to_owned(), json!(text)))
}
