//! An agent's answer, told step by step: ids and times are filled in, so that a pair shows only what it is about.
#![expect(clippy::unwrap_used, reason = "a kit for tests fails by panicking, like the tests themselves")]

use serde_json::{Value, json};

/// Time between two steps, in milliseconds.
const STEP: u64 = 100;

/// An answer under construction. Calls are named `c1`, `c2`, … and actions `a1`, `a2`, … in their order.
#[derive(Debug, Clone)]
pub(crate) struct Agent {
    events: Vec<Value>,
    calls: usize,
    actions: Vec<Value>,
    output: Value,
}

/// An agent that does nothing and says “Done.”
pub(crate) fn agent() -> Agent {
    Agent {
        events: Vec::new(),
        calls: 0,
        actions: Vec::new(),
        output: json!({"content_type": "text", "content": "Done."}),
    }
}

impl Agent {
    /// Calls a tool, which returns a payload.
    pub(crate) fn calls(self, tool: &str, args: &Value, payload: &Value) -> Self {
        self.at_once(&[(tool, args, payload)])
    }

    /// Calls a tool, which fails.
    pub(crate) fn fails(self, tool: &str, args: &Value, error: &str) -> Self {
        let mut agent = self.calls(tool, args, &json!(error));
        agent.events.last_mut().unwrap()["status"] = json!("error");
        agent
    }

    /// Calls several tools before any of them answers; they answer in the same order.
    pub(crate) fn at_once(mut self, calls: &[(&str, &Value, &Value)]) -> Self {
        let first = self.calls + 1;
        for (offset, (tool, args, _)) in calls.iter().enumerate() {
            let call_id = format!("c{}", first + offset);
            self = self.event(json!({"type": "tool_call", "call_id": call_id, "tool": tool, "args": args}));
        }
        for (offset, (.., payload)) in calls.iter().enumerate() {
            let call_id = format!("c{}", first + offset);
            self = self.event(json!({
                "type": "tool_result", "call_id": call_id, "status": "ok", "latency_ms": 80, "payload_summary": payload,
            }));
        }
        self.calls += calls.len();
        self
    }

    /// Looks documents up.
    pub(crate) fn retrieves(self, query: &str, doc_ids: &[&str]) -> Self {
        self.event(json!({"type": "retrieval", "query": query, "doc_ids": doc_ids}))
    }

    /// Any other event; its time is filled in.
    pub(crate) fn event(mut self, mut event: Value) -> Self {
        event["ts"] = json!(1_000 + self.events.len() as u64 * STEP);
        self.events.push(event);
        self
    }

    /// Proposes an action of low risk, without evidence.
    pub(crate) fn proposes(mut self, tool: &str, params: &Value) -> Self {
        let id = format!("a{}", self.actions.len() + 1);
        self.actions.push(json!({
            "action_id": id, "action_type": "write", "tool_name": tool, "params": params, "risk_level": "low",
            "risk_tags": [], "evidence_refs": [],
        }));
        self
    }

    /// States the risk of the action that was proposed last.
    pub(crate) fn at_risk(mut self, level: &str) -> Self {
        self.actions.last_mut().unwrap()["risk_level"] = json!(level);
        self
    }

    /// Lets the last call carry an action out.
    pub(crate) fn carrying_out(mut self, action_id: &str) -> Self {
        let call = self.events.iter_mut().rev().find(|event| event["type"] == "tool_call");
        call.unwrap()["action_id"] = json!(action_id);
        self
    }

    /// Lets the action that was proposed last rest on the results of calls.
    pub(crate) fn resting_on(mut self, call_ids: &[&str]) -> Self {
        let refs: Vec<_> = call_ids.iter().map(|id| json!({"kind": "tool_result", "call_id": id})).collect();
        self.actions.last_mut().unwrap()["evidence_refs"] = json!(refs);
        self
    }

    /// Says something in the end.
    pub(crate) fn says(mut self, text: &str) -> Self {
        self.output = json!({"content_type": "text", "content": text});
        self
    }

    /// Says something in the end, in an event as well.
    pub(crate) fn ends_with(self, text: &str) -> Self {
        self.event(json!({"type": "final_output", "content_type": "text", "content": text})).says(text)
    }

    /// Ends with an object.
    pub(crate) fn gives(mut self, object: &Value) -> Self {
        self.output = json!({"content_type": "json", "content": object});
        self
    }

    /// The artifact, but for its case and its side.
    pub(crate) fn artifact(&self) -> Value {
        json!({
            "schema_version": "case.v1", "status": "ok", "proposed_actions": self.actions, "events": self.events,
            "final_output": self.output,
        })
    }
}
