//! The result of a call: what the agent received.

use counterproof_artifact::{Content, Count, Extra, Millis, ToolResult, ToolStatus};
use serde_json::{Map, Value, json};

use super::preview::Preview;
use super::recorded_call::RecordedCall;
use super::tool_call::{decision_facts, is_refusal};

/// The class of the error of a refused call.
const POLICY_BLOCK: &str = "policy_block";

/// Builds the result of a call that has ended.
pub(super) fn tool_result(call: &RecordedCall, end: &Value, call_id: String) -> ToolResult {
    let status = match end["status"].as_str() {
        Some("OK") => ToolStatus::Ok,
        Some(_) => ToolStatus::Error,
        None if end["error"].is_object() => ToolStatus::Error,
        None => ToolStatus::Ok,
    };
    ToolResult {
        call_id,
        action_id: None,
        status,
        latency_ms: latency(&end["latency_ms"]),
        payload_summary: payload(call, end),
        payload_asset_href: None,
        payload_asset_sha256: None,
        extra: Extra::new(),
    }
}

fn latency(latency: &Value) -> Millis {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "such a cast saturates")]
    let rounded = latency.as_u64().unwrap_or_else(|| latency.as_f64().unwrap_or_default().ceil() as u64);
    Millis::from(Count::from(rounded).get())
}

/// Returns the decision about a refused call, the result of the tool, or the error.
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
