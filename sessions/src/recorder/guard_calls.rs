//! The calls that the guard has recorded for a session, as records of the session.
//!
//! The same call may be known from what the model was sent. The two are one record then: what the guard saw, with the id
//! and the text that the model knows.

use counterproof_ledger::query::Fields;
use counterproof_ledger::store::{Query, StoreError};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::event::{EventBody, EventId, SessionEvent, ToolCall, ToolResult};
use crate::store::SessionStore;

/// Calls that are added at a time.
const AT_ONCE: u64 = 256;

/// A call as the ledger has it.
struct GuardCall {
    call_id: String,
    server: String,
    tool: String,
    args_hash: String,
    body: ToolCall,
    created_at: String,
}

/// Adds the ended calls of the run with the id of a session that the session does not have yet.
pub fn absorb(store: &mut SessionStore, session_id: &str) -> Result<(), StoreError> {
    if !store.ledger().has_table("tool_calls")? {
        return Ok(());
    }
    let mut last = (String::new(), String::new());
    loop {
        let calls = new_calls(store, session_id, &last)?;
        let Some(end) = calls.last() else { return Ok(()) };
        last = (end.created_at.clone(), end.call_id.clone());
        for call in calls {
            add(store, session_id, call)?;
        }
    }
}

/// Returns the next calls after one. Each is passed once, also if it cannot be added.
fn new_calls(
    store: &mut SessionStore,
    session_id: &str,
    (created_at, call_id): &(String, String),
) -> Result<Vec<GuardCall>, StoreError> {
    let query = Query::new(
        "SELECT t.call_id, t.server_name, t.tool_name, t.args_hash, t.decision, t.rule_id, t.reason_code, t.status, \
         t.error_class, t.latency_ms, t.preview_truncated, t.created_at, p.args_preview, p.result_preview \
         FROM tool_calls AS t LEFT JOIN previews AS p ON p.run_id = t.run_id AND p.call_id = t.call_id \
         WHERE t.run_id = ?1 AND t.status IS NOT NULL AND NOT EXISTS (SELECT 1 FROM session_events AS e \
         WHERE e.session_id = ?1 AND e.guard_call = t.call_id) AND (t.created_at > ?3 OR (t.created_at = ?3 AND \
         t.call_id > ?4)) ORDER BY t.created_at, t.call_id LIMIT ?2",
    );
    let query = query.with(session_id).with(AT_ONCE).with(created_at.as_str()).with(call_id.as_str());
    let rows = store.ledger().select(&query)?;
    Ok(rows.into_iter().map(|row| call(Fields::new(row))).collect())
}

fn call(mut fields: Fields) -> GuardCall {
    let (call_id, server, tool) = (fields.required(), fields.required(), fields.required());
    let (args_hash, decision, rule, reason) = (fields.required(), fields.text(), fields.text(), fields.text());
    let (status, class, latency_ms) = (fields.text(), fields.text(), fields.integer());
    let is_truncated = fields.integer() == Some(1);
    let created_at = fields.required();
    let (arguments, result) = (fields.text(), fields.text());
    let parsed = |text: String| serde_json::from_str(&text).unwrap_or(Value::String(text));
    let result: Value = result.map_or(Value::Null, parsed);
    let is_ok = status.as_deref() == Some("OK") && result["isError"] != json!(true);
    let refusal = decision
        .as_deref()
        .filter(|decision| *decision != "ALLOW")
        .map(|decision| json!({"action": decision, "rule_id": rule, "reason_code": reason}));
    let error = class.map(|class| reason.clone().map_or(class.clone(), |reason| format!("{class}: {reason}")));
    let body = ToolCall {
        tool_name: format!("{server}.{tool}"),
        arguments: arguments.map_or(Value::Null, parsed),
        result: ToolResult {
            success: Some(is_ok),
            content: content(&result),
            truncated: Some(is_truncated),
            error: error.filter(|_| !is_ok),
            sandbox: None,
        },
        latency_ms: latency_ms.and_then(|time| u64::try_from(time).ok()),
        call_id: None,
        decision: refusal,
    };
    GuardCall { call_id, server, tool, args_hash, body, created_at }
}

/// Returns the text of a result of MCP.
fn content(result: &Value) -> Option<String> {
    let texts: Option<Vec<&str>> =
        result["content"].as_array().map(|items| items.iter().filter_map(|item| item["text"].as_str()).collect());
    match (texts, result) {
        (Some(texts), _) if !texts.is_empty() => Some(texts.join("\n")),
        (_, Value::Null) => None,
        (_, Value::String(text)) => Some(text.clone()),
        (_, other) => Some(other.to_string()),
    }
}

fn add(store: &mut SessionStore, session_id: &str, call: GuardCall) -> Result<(), StoreError> {
    let known = store.calls_with_arguments(session_id, &call.args_hash)?;
    let same = known.into_iter().find(|event| match &event.body {
        EventBody::ToolCall(known) => is_name_of(&known.tool_name, &call.server, &call.tool),
        _ => false,
    });
    let at: Timestamp = call.created_at.parse().unwrap_or(Timestamp::UNIX_EPOCH);
    let mut event = SessionEvent::captured(at, EventBody::ToolCall(call.body));
    // Other producers have ids that are unique only in their run.
    event.event_id = EventId::from_key(&format!("{session_id}/guard/{}", call.call_id));
    if let Some(known) = same {
        event.event_id = known.event_id;
        event.agent = known.agent;
        if let (EventBody::ToolCall(seen), EventBody::ToolCall(known)) = (&mut event.body, known.body) {
            seen.call_id = known.call_id;
            // The guard records the start of them, or nothing at all.
            seen.arguments = known.arguments;
            // The model was given the whole text, and the guard records the start of it.
            if known.result.content.is_some() {
                seen.result.content = known.result.content;
                seen.result.truncated = known.result.truncated;
            }
        }
    }
    store.put_guard_call(session_id, &call.call_id, event)
}

/// Returns true if a model may know a tool of a server by a name, such as `mcp__SERVER__TOOL`.
fn is_name_of(name: &str, server: &str, tool: &str) -> bool {
    let Some(before) = name.strip_suffix(tool) else { return false };
    let before = before.trim_end_matches(['_', '.', '-', '/', ':']);
    before.is_empty() || before.ends_with(server) || normal(before).ends_with(&normal(server))
}

/// Agents replace other characters in the names of servers.
fn normal(name: &str) -> String {
    name.chars().map(|character| if character.is_ascii_alphanumeric() { character } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_knows_a_tool_by_several_names() {
        for name in ["push", "git.push", "mcp__git__push", "git_push", "mcp__my_git__push"] {
            assert!(is_name_of(name, if name.contains("my_") { "my git" } else { "git" }, "push"), "{name}");
        }
        for name in ["pus", "other.push", "push_all", "backpush"] {
            assert!(!is_name_of(name, "git", "push"), "{name}");
        }
    }
}
