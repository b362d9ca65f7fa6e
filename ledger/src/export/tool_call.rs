//! The step of a call: its tool, its arguments, and what the rules found about it.

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
        risk_tags: tags(call),
        extra: findings(call),
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

fn tags(call: &RecordedCall) -> Option<Vec<String>> {
    let tags: Vec<String> =
        call.field("tags")?.as_array()?.iter().filter_map(|tag| Some(tag.as_str()?.to_owned())).collect();
    Some(tags).filter(|tags| !tags.is_empty())
}

/// Returns what the rules would have decided in observe mode, and a refusal that no result can show because the call has no end.
fn findings(call: &RecordedCall) -> Extra {
    let mut extra = Extra::new();
    let Some(decision) = call.decision() else { return extra };
    if let Some(observed) = decision["observed"].as_object() {
        let texts = ["action", "rule_id", "reason_code"].into_iter().filter_map(|name| text_field(observed, name));
        extra.insert("observed".to_owned(), texts.collect());
    }
    if call.end().is_none() && is_refusal(decision) {
        extra.insert("decision".to_owned(), Value::Object(decision_facts(decision)));
    }
    extra
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
