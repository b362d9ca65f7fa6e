//! The answer to a refused call.

use counterproof_ledger::event::{Action, DecisionRecord, EVENT_VERSION};
use serde_json::{Map, Value, json};

use super::RequestId;
use crate::policy::{DenyAs, Responses};
use crate::session::Refusal;

const PARSE_ERROR: i64 = -32700;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revision {
    /// Revisions with `initialize`, up to 2025-11-25.
    WithInitialize,
    /// Stateless revisions, from 2026-07-28.
    Stateless,
}

/// The name that the Python SDK states if its program states none. It raises an exception at a JSON-RPC error, which ends a program
/// that does not expect one. A result with `isError` reaches the model.
const PYTHON_SDK: &str = "mcp";

impl Revision {
    /// Returns the form of a refusal for `auto`.
    fn automatic(self, client_name: Option<&str>) -> DenyAs {
        match self {
            // Their revision reserves the range of the default codes.
            Revision::Stateless => DenyAs::ToolResult,
            Revision::WithInitialize if client_name == Some(PYTHON_SDK) => DenyAs::ToolResult,
            Revision::WithInitialize => DenyAs::Error,
        }
    }
}

/// Formats the answer to a refused call as JSON text without a newline. `client_name` is what the client stated in `initialize`.
pub fn refusal_message(
    refusal: &Refusal,
    id: &RequestId,
    responses: &Responses,
    revision: Revision,
    client_name: Option<&str>,
) -> String {
    let decision = &refusal.decision;
    let details = details(refusal);
    // The id is JSON text already.
    let id: Value = serde_json::from_str(id.as_json()).unwrap_or_default();
    let is_result = match responses.deny_as {
        DenyAs::Auto => revision.automatic(client_name) == DenyAs::ToolResult,
        form => form == DenyAs::ToolResult,
    };
    let message = if is_result {
        let mut result = json!({
            "content": [{"type": "text", "text": text(decision)}],
            "isError": true,
            "_meta": {"subluminal": details},
        });
        if revision == Revision::Stateless {
            result["resultType"] = "complete".into();
        }
        json!({"jsonrpc": "2.0", "id": id, "result": result})
    } else {
        json!({
            "jsonrpc": "2.0",
            "id": id,
            "error": {
                "code": code(decision.action, responses),
                "message": summary(decision),
                "data": {"subluminal": details},
            },
        })
    };
    message.to_string()
}

pub fn uninspected_message(problem: &str) -> String {
    let message = format!("the guard cannot inspect the message, and the policy refuses such messages: {problem}");
    error_message(None, PARSE_ERROR, &message)
}

pub fn error_message(id: Option<&RequestId>, code: i64, message: &str) -> String {
    // JSON-RPC requires the id `null` in an error whose request has no readable id.
    let id = id.map_or("null", RequestId::as_json);
    let message = Value::from(message);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{message}}}}}"#)
}

const fn code(action: Action, responses: &Responses) -> i32 {
    match action {
        Action::Throttle => responses.codes.throttled,
        Action::RejectWithHint => responses.codes.hint,
        Action::TerminateRun => responses.codes.terminated,
        Action::Allow | Action::Block => responses.codes.blocked,
    }
}

fn summary(decision: &DecisionRecord) -> String {
    // The hint is appended, because many clients pass only the message of an error to the model.
    let summary = &decision.explain.summary;
    match &decision.hint {
        Some(hint) if hint.hint_text != *summary => format!("{summary}\n{}", hint.hint_text),
        _ => summary.clone(),
    }
}

/// The text of a tool result, which a model reads.
fn text(decision: &DecisionRecord) -> String {
    let text = summary(decision);
    match decision.backoff_ms {
        Some(backoff) => format!("{text}\nTry again in {backoff} ms."),
        None => text,
    }
}

fn details(refusal: &Refusal) -> Value {
    let Refusal { run_id, call, decision, .. } = refusal;
    let mut details = Map::new();
    let mut add = |key: &str, value: Value| details.insert(key.to_owned(), value);
    add("v", EVENT_VERSION.into());
    add("action", decision.action.name().into());
    add("rule_id", decision.rule_id.clone().into());
    add("reason_code", decision.explain.reason_code.clone().into());
    add("summary", summary(decision).into());
    add("run_id", run_id.clone().into());
    add("call_id", call.call_id.as_str().into());
    add("server_name", call.server_name.clone().into());
    add("tool_name", call.tool_name.clone().into());
    add("args_hash", call.args_hash.to_string().into());
    add("policy", json!(decision.policy));
    if let Some(backoff) = decision.backoff_ms {
        add("backoff_ms", backoff.into());
        add("retry_advice", format!("Try again in {backoff} ms.").into());
    }
    if let Some(hint) = &decision.hint {
        add("hint", json!(hint));
    }
    if let Some(terminate) = &decision.terminate {
        add("terminate", json!(terminate));
    }
    Value::Object(details)
}
