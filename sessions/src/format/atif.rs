//! A session as a trajectory in the Agent Trajectory Interchange Format (ATIF).

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::event::{EventBody, LlmCall, SessionEvent, ToolCall};
use crate::message::{Conversation, MessagePart, PartContent};
use crate::session::SessionHead;
use crate::summary::{Summary, error_message};

const SCHEMA_VERSION: &str = "ATIF-v1.7";

/// Returns a session as a trajectory. Each model call is a step of the agent with the results of the tools that it asked for.
/// The messages of the user and the system are steps when they are sent first. Records that the format has no place for are
/// counted in `extra`.
pub fn atif(head: &SessionHead, events: &[SessionEvent]) -> Value {
    let summary = Summary::new(events);
    let mut writer = Writer { results: results(events), conversation: Conversation::default(), steps: Vec::new() };
    let mut others: Map<String, Value> = Map::new();
    for event in events {
        match &event.body {
            EventBody::LlmCall(call) => writer.model_call(event, call),
            EventBody::ToolCall(call) => writer.tool_call(event, call),
            other => {
                let count = others.get(other.kind()).and_then(Value::as_u64).unwrap_or_default();
                others.insert(other.kind().to_owned(), json!(count + 1));
            }
        }
    }
    let model = events.iter().find_map(|event| match &event.body {
        EventBody::LlmCall(call) => call.request.model.as_deref(),
        _ => None,
    });
    // The format requires a version, and no record has one.
    let mut agent = json!({"name": head.workflow.as_deref().unwrap_or(head.origin.word()), "version": "unknown"});
    if let Some(model) = model {
        agent["model_name"] = json!(model);
    }
    let mut extra = Map::from_iter([
        ("origin".to_owned(), json!(head.origin.word())),
        ("status".to_owned(), json!(head.status.word())),
    ]);
    extra.extend(head.title.as_ref().map(|title| ("title".to_owned(), json!(title))));
    extra.extend((!others.is_empty()).then(|| ("other_records".to_owned(), Value::Object(others))));
    let final_metrics = known([
        ("total_prompt_tokens", summary.tokens.prompt_tokens.map(Value::from)),
        ("total_completion_tokens", summary.tokens.completion_tokens.map(Value::from)),
        ("total_cached_tokens", summary.tokens.cached_tokens.map(Value::from)),
        ("total_cost_usd", summary.cost.map(Value::from)),
        ("total_steps", Some(json!(writer.steps.len()))),
    ]);
    json!({
        "schema_version": SCHEMA_VERSION,
        "session_id": head.session_id,
        "agent": agent,
        "steps": writer.steps,
        "final_metrics": final_metrics,
        "extra": extra,
    })
}

/// Names a call of a session: two agents can have calls of one id.
type CallKey<'a> = (Option<&'a str>, String);

fn results(events: &[SessionEvent]) -> HashMap<CallKey<'_>, &SessionEvent> {
    let mut results = HashMap::new();
    for event in events {
        if let EventBody::ToolCall(ToolCall { call_id: Some(id), .. }) = &event.body {
            results.entry((event.agent.as_deref(), id.clone())).or_insert(event);
        }
    }
    results
}

struct Writer<'a> {
    /// The tool calls that no step has yet.
    results: HashMap<CallKey<'a>, &'a SessionEvent>,
    conversation: Conversation<'a>,
    steps: Vec<Value>,
}

impl<'a> Writer<'a> {
    fn model_call(&mut self, event: &'a SessionEvent, call: &'a LlmCall) {
        let agent = event.agent.as_deref();
        for part in self.conversation.request(agent, &call.request) {
            self.message(event, &part);
        }
        let mut fields = Map::new();
        let mut calls = Vec::new();
        let mut observed = Vec::new();
        if let Some(response) = &call.response {
            for part in self.conversation.response(agent, response) {
                match part.content {
                    PartContent::Reasoning(text) => {
                        fields.insert("reasoning_content".to_owned(), json!(text));
                    }
                    PartContent::ToolCall { id, name, arguments } => {
                        let id = id.unwrap_or_else(|| format!("call-{}-{}", self.steps.len() + 1, calls.len() + 1));
                        let result = self.results.remove(&(agent, id.clone()));
                        observed.extend(result.and_then(|result| observation(result, &id)));
                        calls.push(requested(&id, &name, arguments));
                    }
                    PartContent::Text(_) | PartContent::ToolResult { .. } | PartContent::Other(_) => {}
                }
            }
            let usage = response.usage.unwrap_or_default();
            let metrics = known([
                ("prompt_tokens", usage.prompt_tokens.map(Value::from)),
                ("completion_tokens", usage.completion_tokens.map(Value::from)),
                ("cached_tokens", usage.cached_tokens.map(Value::from)),
                ("cost_usd", call.cost.map(Value::from)),
            ]);
            if !metrics.is_empty() {
                fields.insert("metrics".to_owned(), Value::Object(metrics));
            }
        }
        let model = call.response.as_ref().and_then(|response| response.model.as_ref()).or(call.request.model.as_ref());
        fields.extend(model.map(|model| ("model_name".to_owned(), json!(model))));
        add_calls(&mut fields, calls, observed);
        let text = call.response.as_ref().and_then(|response| response.content.as_deref()).unwrap_or_default();
        self.step(event, "agent", text, fields);
    }

    /// Adds a call that no model call of the session asked for, such as one that only the guard saw.
    fn tool_call(&mut self, event: &'a SessionEvent, call: &'a ToolCall) {
        if let Some(id) = &call.call_id
            && self.results.remove(&(event.agent.as_deref(), id.clone())).is_none()
        {
            return;
        }
        let id = call.call_id.clone().unwrap_or_else(|| event.event_id.as_str().to_owned());
        let calls = vec![requested(&id, &call.tool_name, call.arguments.clone())];
        let mut fields = Map::new();
        add_calls(&mut fields, calls, observation(event, &id).into_iter().collect());
        self.step(event, "agent", "", fields);
    }

    fn message(&mut self, event: &SessionEvent, part: &MessagePart) {
        let PartContent::Text(text) = &part.content else { return };
        let source = match part.role.as_str() {
            "user" => "user",
            "system" | "developer" => "system",
            // Words of the model that no answer of this session has, such as examples in a prompt.
            _ => return,
        };
        self.step(event, source, text, Map::new());
    }

    fn step(&mut self, event: &SessionEvent, source: &str, message: &str, fields: Map<String, Value>) {
        let mut step = Map::from_iter([
            ("step_id".to_owned(), json!(self.steps.len() + 1)),
            ("timestamp".to_owned(), json!(event.timestamp)),
            ("source".to_owned(), json!(source)),
            ("message".to_owned(), json!(message)),
        ]);
        step.extend(fields);
        let agent = event.agent.as_ref().map(|agent| ("agent", json!(agent)));
        let error = error_message(event).filter(|_| source == "agent").map(|error| ("error", json!(error)));
        let extra = known(agent.into_iter().chain(error).map(|(name, value)| (name, Some(value))));
        if !extra.is_empty() {
            step.insert("extra".to_owned(), Value::Object(extra));
        }
        self.steps.push(Value::Object(step));
    }
}

fn requested(id: &str, name: &str, arguments: Value) -> Value {
    let arguments = match arguments {
        object @ Value::Object(_) => object,
        // The format has objects only, and a model may write something else.
        other => json!({ "text": other }),
    };
    json!({"tool_call_id": id, "function_name": name, "arguments": arguments})
}

fn observation(event: &SessionEvent, id: &str) -> Option<Value> {
    let EventBody::ToolCall(call) = &event.body else { return None };
    let content = call.result.content.as_ref().or(call.result.error.as_ref())?;
    Some(json!({"source_call_id": id, "content": content}))
}

fn add_calls(fields: &mut Map<String, Value>, calls: Vec<Value>, observed: Vec<Value>) {
    if !calls.is_empty() {
        fields.insert("tool_calls".to_owned(), Value::Array(calls));
    }
    if !observed.is_empty() {
        let results = Map::from_iter([("results".to_owned(), Value::Array(observed))]);
        fields.insert("observation".to_owned(), Value::Object(results));
    }
}

fn known<'a>(fields: impl IntoIterator<Item = (&'a str, Option<Value>)>) -> Map<String, Value> {
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}
