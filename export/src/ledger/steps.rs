//! The steps of a case: a call with its arguments, and its result, from the previews of the events.

use counterproof_artifact::{Content, Count, Extra, Millis, ToolCall, ToolResult, ToolStatus};
use serde_json::{Map, Value, json};

use super::recorded_run::RecordedCall;
use crate::run_builder;

/// The preview of a payload that was too large to be inspected. It has no content.
const TRUNCATED: &str = "[TRUNCATED]";

/// Nesting of a value that is taken over. A document may have 127 levels, and the artifact adds some around the value.
const MAX_DEPTH: usize = 100;

#[derive(Debug, Clone, Default)]
pub(super) struct Preview {
    pub(super) text: Option<String>,
    pub(super) is_truncated: bool,
}

impl Preview {
    /// Reads the preview of an event, whose text has another name for arguments and for results.
    pub(super) fn new(preview: &Value, name: &str) -> Self {
        let text = preview[name].as_str().map(str::to_owned);
        Self { text, is_truncated: preview["truncated"].as_bool().unwrap_or_default() }
    }

    pub(super) fn object(&self) -> Option<Map<String, Value>> {
        match serde_json::from_str(self.text.as_ref().filter(|_| !self.is_truncated)?) {
            // Deeper values would make an artifact that no reader parses.
            Ok(value @ Value::Object(_)) if depth(&value) > MAX_DEPTH => None,
            Ok(Value::Object(fields)) => Some(fields),
            _ => None,
        }
    }

    /// Returns an object with the part of a value that the preview has, and a fact that identifies the whole value.
    pub(super) fn part(&self, fact: Option<(&str, Value)>) -> Map<String, Value> {
        let mut part = Map::from_iter([("truncated".to_owned(), json!(self.is_truncated || self.text.is_none()))]);
        part.extend(fact.map(|(name, value)| (name.to_owned(), value)));
        let text = self.text.as_ref().filter(|text| *text != TRUNCATED);
        part.extend(text.map(|text| ("preview".to_owned(), json!(text))));
        part
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

/// The tool of a call without a name.
const UNNAMED: &str = "unknown";

/// Longest name of a server or a tool, in bytes.
const MAX_NAME_BYTES: usize = 512;

pub(super) fn tool_call(call: &RecordedCall, call_id: String) -> ToolCall {
    let mut step = run_builder::tool_call(call_id, tool(call), args(call));
    step.annotations = Some(annotations(call)).filter(|notes| !notes.is_empty());
    step.extra = refusal_without_end(call);
    step
}

fn tool(call: &RecordedCall) -> String {
    // A name of any length is recorded, but a case is for people.
    let tool = cut(call.text("tool_name").unwrap_or(UNNAMED));
    // Tools of two servers can have one name, and a step must have the same name whichever servers run.
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

fn refusal_without_end(call: &RecordedCall) -> Extra {
    // No result can show the decision about a call that has no end.
    let decision = call.decision().filter(|decision| call.end().is_none() && is_refusal(decision));
    Extra::from_iter(decision.map(|decision| ("decision".to_owned(), Value::Object(decision_facts(decision)))))
}

pub(crate) fn is_refusal(decision: &Value) -> bool {
    decision["action"].as_str().is_some_and(|action| action != "ALLOW")
}

/// Returns the parts of a decision that do not differ between equal runs: all but times and the policy.
pub(crate) fn decision_facts(decision: &Value) -> Map<String, Value> {
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

const POLICY_BLOCK: &str = "policy_block";

pub(super) fn tool_result(call: &RecordedCall, end: &Value, call_id: String) -> ToolResult {
    let status = match end["status"].as_str() {
        Some("OK") => ToolStatus::Ok,
        Some(_) => ToolStatus::Error,
        None if end["error"].is_object() => ToolStatus::Error,
        None => ToolStatus::Ok,
    };
    run_builder::tool_result(call_id, status, latency(&end["latency_ms"]), payload(call, end))
}

fn latency(latency: &Value) -> Millis {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "such a cast saturates")]
    let rounded = latency.as_u64().unwrap_or_else(|| latency.as_f64().unwrap_or_default().ceil() as u64);
    Millis::from(Count::from(rounded).get())
}

fn payload(call: &RecordedCall, end: &Value) -> Option<Content> {
    let error = &end["error"];
    if let Some(decision) = call.decision().filter(|decision| is_refusal(decision)) {
        return Some(refusal(decision_facts(decision)));
    }
    if error["class"] == POLICY_BLOCK {
        let facts = [("reason_code", &error["code"]), ("summary", &error["message"])];
        let facts = facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!(value.as_str()?))));
        return Some(refusal(facts.collect()));
    }
    let preview = Preview::new(&end["preview"], "result_preview");
    let result = preview.object();
    // An error of the protocol has a code. A result that the tool marks as an error has none, and is shown as a result.
    let is_result = error["code"].is_null();
    match result {
        Some(result) if is_result => return Some(Content::Json(result)),
        Some(result) => return Some(failure(end, result.get("data"))),
        None if error.is_object() && (preview.text.is_none() || !is_result) => return Some(failure(end, None)),
        None => {}
    }
    match preview.text {
        Some(text) if !preview.is_truncated => Some(Content::Text(text)),
        None if !preview.is_truncated => None,
        _ => Some(Content::Json(preview.part(whole(end)))),
    }
}

fn refusal(decision: Map<String, Value>) -> Content {
    Content::Json(Map::from_iter([("decision".to_owned(), Value::Object(decision))]))
}

/// Returns a fact that identifies a result of which the preview is a part: its hash, or at least its size.
fn whole(end: &Value) -> Option<(&'static str, Value)> {
    let hash = end["result_stream_hash"].as_str().map(|hash| ("sha256", json!(hash)));
    hash.or_else(|| Some(("bytes", json!(end["bytes_out"].as_u64()?))))
}

fn failure(end: &Value, data: Option<&Value>) -> Content {
    let error = &end["error"];
    let texts = ["class", "message", "code"].map(|name| (name, error[name].as_str().map(|text| json!(text))));
    let fields = texts.into_iter().chain([("data", data.cloned())]);
    let fields: Map<_, _> = fields.filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    Content::Json(Map::from_iter([("error".to_owned(), Value::Object(fields))]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Preview {
        Preview { text: Some(text.to_owned()), is_truncated: false }
    }

    #[test]
    fn only_a_whole_object_is_taken_over() {
        assert_eq!(whole(r#"{"a": 1}"#).object(), json!({"a": 1}).as_object().cloned());
        let cut = Preview { is_truncated: true, ..whole(r#"{"a": 1}"#) };
        for preview in [whole("[1]"), whole("{"), whole("1e999"), whole(""), Preview::default(), cut] {
            assert_eq!(preview.object(), None, "{preview:?}");
        }
    }

    #[test]
    fn a_value_that_is_too_deep_for_an_artifact_stays_a_text() {
        let nested = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        assert!(whole(&nested(99)).object().is_some());
        assert!(whole(&nested(100)).object().is_none());
        assert_eq!(whole(&nested(100)).part(None)["preview"], nested(100));
    }

    #[test]
    fn a_part_states_what_is_known() {
        let part = |preview: Preview| Value::Object(preview.part(Some(("sha256", json!("abc")))));
        let cut = Preview { text: Some("{\"a".to_owned()), is_truncated: true };
        assert_eq!(part(cut), json!({"truncated": true, "sha256": "abc", "preview": "{\"a"}));
        assert_eq!(part(Preview::default()), json!({"truncated": true, "sha256": "abc"}));
        assert_eq!(part(whole(TRUNCATED)), json!({"truncated": false, "sha256": "abc"}));
        assert_eq!(part(whole("[1]")), json!({"truncated": false, "sha256": "abc", "preview": "[1]"}));
    }
}
