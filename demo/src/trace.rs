//! The trace of a case: events with times and call IDs, proposed actions, and the final output.
//!
//! Times are simulated: they start at a fixed moment, and each step adds the latency of its tool.

use serde_json::{Value, json};

use crate::shop::{self, ToolAnswer};

/// Start time of every case: 2026-03-02T09:00:00Z.
const START_MS: u64 = 1_772_442_000_000;

/// Simulated delay before each step.
const THINKING_MS: u64 = 150;

pub(crate) struct Trace {
    now: u64,
    calls: usize,
    events: Vec<Value>,
    actions: Vec<Value>,
}

pub(crate) struct Called {
    call_id: String,
    pub(crate) answer: Value,
}

impl Called {
    /// Returns an evidence ref to this call.
    pub(crate) fn evidence(&self) -> Value {
        json!({ "kind": "tool_result", "call_id": self.call_id })
    }
}

pub(crate) struct Action {
    pub(crate) kind: &'static str,
    pub(crate) tool: &'static str,
    pub(crate) params: Value,
    pub(crate) risk: &'static str,
    pub(crate) tags: &'static [&'static str],
    pub(crate) evidence: Vec<Value>,
}

impl Trace {
    pub(crate) fn new() -> Self {
        Self { now: START_MS, calls: 0, events: Vec::new(), actions: Vec::new() }
    }

    pub(crate) fn call(&mut self, tool: &str, args: &Value) -> Called {
        let answer = shop::run(tool, args);
        self.record(tool, args, answer, None)
    }

    pub(crate) fn search(&mut self, query: &str) -> Vec<Value> {
        self.now += THINKING_MS;
        let found = shop::search_policies(query);
        let ids: Vec<&str> = found.iter().map(|document| document.id).collect();
        let evidence = ids.iter().map(|id| json!({ "kind": "retrieval_doc", "doc_id": id })).collect();
        let snippets: Vec<&str> = found.iter().map(|document| document.text).collect();
        self.events
            .push(json!({ "type": "retrieval", "ts": self.now, "query": query, "doc_ids": ids, "snippets": snippets }));
        evidence
    }

    pub(crate) fn propose(&mut self, action: &Action) -> String {
        // Numbered, because a random id would differ between two runs.
        let action_id = format!("a{}", self.actions.len() + 1);
        self.actions.push(json!({
            "action_id": action_id,
            "action_type": action.kind,
            "tool_name": action.tool,
            "params": action.params,
            "risk_level": action.risk,
            "risk_tags": action.tags,
            "evidence_refs": action.evidence,
        }));
        action_id
    }

    /// Proposes an action and executes it.
    pub(crate) fn act(&mut self, action: &Action) -> Called {
        let answer = shop::run(action.tool, &action.params);
        self.act_with(action, answer)
    }

    /// Proposes an action and records the given result of its tool.
    pub(crate) fn act_with(&mut self, action: &Action, answer: ToolAnswer) -> Called {
        let action_id = self.propose(action);
        self.record(action.tool, &action.params, answer, Some(&action_id))
    }

    pub(crate) fn finish_text(self, text: &str) -> Value {
        self.finish("text", &json!(text))
    }

    pub(crate) fn finish_json(self, content: &Value) -> Value {
        self.finish("json", content)
    }

    fn record(&mut self, tool: &str, args: &Value, answer: ToolAnswer, action_id: Option<&str>) -> Called {
        self.now += THINKING_MS;
        self.calls += 1;
        let call_id = format!("c{}", self.calls);
        let mut call = json!({ "type": "tool_call", "ts": self.now, "call_id": call_id, "tool": tool, "args": args });
        // Between call and result, so that the times agree with the latency.
        self.now += answer.latency_ms;
        let (status, payload) = match answer.result {
            Ok(result) => ("ok", result),
            Err(error) => ("error", error),
        };
        let mut result = json!({
            "type": "tool_result", "ts": self.now, "call_id": call_id, "status": status,
            "latency_ms": answer.latency_ms, "payload_summary": payload,
        });
        if let Some(action_id) = action_id {
            call["action_id"] = json!(action_id);
            result["action_id"] = json!(action_id);
        }
        // Added together: the id of the action belongs to both.
        self.events.extend([call, result]);
        Called { call_id, answer: payload }
    }

    fn finish(mut self, content_type: &str, content: &Value) -> Value {
        self.now += THINKING_MS;
        // The protocol has the output twice, as the last event and on its own.
        let output = json!({ "content_type": content_type, "content": content });
        self.events.push(
            json!({ "type": "final_output", "ts": self.now, "content_type": content_type, "content": output["content"] }),
        );
        json!({ "proposed_actions": self.actions, "events": self.events, "final_output": output })
    }
}
