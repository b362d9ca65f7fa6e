//! Events as lines of text for people.

use serde_json::Value;

use super::table::short_time;

/// Returns an event as one line: its time, run and type, and what its type adds.
pub(super) fn event_line(line: &str) -> String {
    let event: Value = serde_json::from_str(line).unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let call = &event["call"];
    let mut parts = vec![short_time(&text(&event["ts"])), text(&event["run_id"]), text(&event["type"])];
    if call["server_name"].is_string() || call["tool_name"].is_string() {
        parts.push(format!("{}/{}", text(&call["server_name"]), text(&call["tool_name"])));
    }
    let decision = &event["decision"];
    let values = [
        &decision["action"],
        &decision["rule_id"],
        &decision["explain"]["reason_code"],
        &event["run"]["status"],
        &event["status"],
        &event["error"]["class"],
        &event["health"]["message"],
    ];
    parts.extend(values.into_iter().filter_map(Value::as_str).map(str::to_owned));
    if let Some(latency) = event["latency_ms"].as_u64() {
        parts.push(format!("{latency} ms"));
    }
    parts.extend(call["call_id"].as_str().map(str::to_owned));
    parts.retain(|part| !part.is_empty());
    counterproof_artifact::one_line(&parts.join("  "), 400)
}
