//! Trajectories in the Agent Trajectory Interchange Format (ATIF).

use std::collections::HashMap;
use std::sync::Arc;

use camino::Utf8Path;
use counterproof_artifact::Sha256Digest;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::imported::{Draft, Histories, ImportedSession, MessageId, time, title};
use super::lines::{Masker, Record, read_documents};
use super::report::{Outcome, Tally};
use super::source::{ReadResult, read_files};
use crate::event::{
    Command, EventBody, LlmCall, LlmRequest, LlmResponse, Opaque, RequestedCall, SessionEvent, StateTransition,
    ToolCall, ToolResult, Usage,
};
use crate::message::content_text;
use crate::protocol::{ShellOutput, shell_command, shell_output, token_count};
use crate::session::Origin;

/// Steps that are left out on purpose, with the reason. `docs/session-import.md` has the same table.
pub(super) const LEFT_OUT: [(&str, &str); 1] =
    [("step/copied", "a step that another trajectory has (`is_copied_context`); it is part of the history")];

/// Reads the trajectories of a file: one, or one a line.
pub(super) fn read(path: &Utf8Path, masker: &mut Masker<'_>) -> ReadResult {
    let mut result = ReadResult::default();
    let path = path.to_owned();
    let mut documents = Vec::new();
    read_files(std::iter::once(&path), &mut result, masker, |path, masker, budget, _| {
        read_documents(path, masker, budget, &mut |record| documents.push(record))
    });
    let stem = path.file_stem().unwrap_or_default();
    for (number, document) in documents.into_iter().enumerate() {
        let fallback_id = if number == 0 { stem.to_owned() } else { format!("{stem}-{number}") };
        let session = read_trajectory(document, fallback_id, result.fallback_time, &mut result.tally);
        result.sessions.push(session);
    }
    result
}

struct Trajectory<'a> {
    draft: Draft,
    histories: Histories,
    current: Option<MessageId>,
    agent: Option<&'a str>,
    /// The model of steps that state none.
    model: Option<&'a str>,
    time: Timestamp,
    key: String,
    unanswered: Option<(String, Timestamp, Value)>,
}

fn read_trajectory(document: Record, fallback_id: String, fallback: Timestamp, tally: &mut Tally) -> ImportedSession {
    let document = match document {
        Record::Value(value) if value.get("steps").is_some_and(Value::is_array) => value,
        other => {
            let data = match other {
                Record::Value(value) => value,
                Record::Unreadable(text) => text.into(),
            };
            tally.count("(unreadable)", Outcome::Opaque);
            let mut draft = Draft::new(fallback_id, Origin::Atif);
            let key = format!("atif/{}", Sha256Digest::from_bytes(data.to_string().as_bytes()));
            draft.add(SessionEvent::reconstructed(&key, fallback, EventBody::Opaque(Opaque { data })), None);
            return draft.finish(Arc::default(), fallback);
        }
    };
    let stated = ["session_id", "trajectory_id"].iter().find_map(|name| text(&document, name));
    let id = stated.map_or(fallback_id, str::to_owned);
    let mut trajectory = Trajectory {
        key: format!("atif/{id}"),
        draft: Draft::new(id, Origin::Atif),
        histories: Histories::default(),
        current: None,
        agent: None,
        model: None,
        time: fallback,
        unanswered: None,
    };
    // Trajectories of subagents may have some of their own.
    let mut waiting = vec![(&document, None)];
    let mut number = 0_usize;
    while let Some((trajectory_document, agent)) = waiting.pop() {
        trajectory.add_document(trajectory_document, agent, number, tally);
        number += 1;
        let subagents = trajectory_document.get("subagent_trajectories").and_then(Value::as_array);
        waiting.extend(subagents.into_iter().flatten().rev().map(|subagent| {
            let names = [subagent.pointer("/agent/name"), subagent.get("trajectory_id"), subagent.get("session_id")];
            (subagent, names.into_iter().flatten().find_map(Value::as_str).or(Some("subagent")))
        }));
    }
    trajectory.draft.finish(Arc::new(trajectory.histories), fallback)
}

fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str().filter(|text| !text.is_empty())
}

impl<'a> Trajectory<'a> {
    fn add_document(&mut self, document: &'a Value, agent: Option<&'a str>, number: usize, tally: &mut Tally) {
        self.agent = agent;
        self.model = document.pointer("/agent/model_name").and_then(Value::as_str);
        self.current = None;
        let steps = document.get("steps").and_then(Value::as_array).into_iter().flatten();
        for (index, step) in steps.enumerate() {
            if let Some(time) = text(step, "timestamp").and_then(time) {
                self.time = time;
                self.draft.saw(time);
            }
            let id = step.get("step_id").map_or_else(|| format!("index-{index}"), Value::to_string);
            let key = format!("{}/{number}/{id}", self.key);
            let is_copied = step.get("is_copied_context").and_then(Value::as_bool).unwrap_or(false);
            let source = text(step, "source").unwrap_or("(none)");
            match source {
                _ if is_copied => {
                    tally.count(LEFT_OUT[0].0, Outcome::LeftOut);
                    self.push(message(step, source));
                    self.push_results(step);
                    continue;
                }
                "agent" => self.add_answer(step, &key),
                "user" | "system" => {
                    let message = message(step, source);
                    if source == "user" {
                        let content = content_text(&step["message"]);
                        if self.draft.title.is_none() && agent.is_none() {
                            self.draft.title = title(&content);
                        }
                        self.unanswered = Some((key, self.time, json!({"text": content})));
                    }
                    self.push(message);
                    self.push_results(step);
                }
                _ => {
                    tally.count(&format!("step/{source}"), Outcome::Opaque);
                    self.add(&key, EventBody::Opaque(Opaque { data: step.clone() }), None);
                    continue;
                }
            }
            tally.count(&format!("step/{source}"), Outcome::Mapped);
        }
        if let Some((key, time, context)) = self.unanswered.take() {
            let body = StateTransition {
                from_state: "waiting".to_owned(),
                to_state: "running".to_owned(),
                trigger: "prompt".to_owned(),
                context,
            };
            self.time = time;
            self.add(&key, EventBody::StateTransition(body), None);
        }
    }

    fn add_answer(&mut self, step: &Value, key: &str) {
        self.unanswered = None;
        let history = self.current;
        let message = message(step, "agent");
        let calls = requested(step);
        self.push(message.clone());
        let results: HashMap<&str, String> = results(step).filter_map(|(id, text)| Some((id?, text))).collect();
        self.push_results(step);
        let metrics = step.get("metrics").unwrap_or(&Value::Null);
        let number = |name: &str| metrics.get(name).and_then(token_count);
        let (prompt, completion) = (number("prompt_tokens"), number("completion_tokens"));
        let usage = prompt.is_some() || completion.is_some();
        let usage = usage.then(|| Usage::new(prompt, completion, number("cached_tokens")));
        let model = text(step, "model_name").or(self.model).map(str::to_owned);
        let content = content_text(&step["message"]);
        // A step may have no model call: the agent decided without one.
        if step.get("llm_call_count").and_then(Value::as_u64) != Some(0) {
            let response = LlmResponse {
                content: (!content.is_empty()).then_some(content),
                tool_calls: calls.clone(),
                usage,
                finish_reason: None,
                model: model.clone(),
                body: message,
            };
            let call = LlmCall {
                request: LlmRequest { model, messages: json!([]), ..LlmRequest::default() },
                response: Some(response),
                latency_ms: None,
                cost: metrics.get("cost_usd").and_then(Value::as_f64),
            };
            self.add(key, EventBody::LlmCall(call), history);
        }
        for (index, requested) in calls.into_iter().enumerate() {
            let result = requested.id.as_deref().and_then(|id| results.get(id)).cloned();
            let source = &requested.function.arguments;
            let arguments: Value = serde_json::from_str(source).unwrap_or_else(|_| source.as_str().into());
            let name = requested.function.name;
            let key = format!("{key}/tool/{index}");
            let command = shell_command(&name, &arguments, None).map(|command| {
                let ShellOutput { exit_code, stdout, stderr, latency_ms, .. } =
                    result.as_deref().map(shell_output).unwrap_or_default();
                Command { exit_code, stdout, stderr, latency_ms, call_id: requested.id.clone(), ..command }
            });
            let result = ToolResult {
                success: result.as_ref().map(|_| true),
                truncated: result.as_ref().map(|_| false),
                content: result,
                error: None,
                sandbox: None,
            };
            let call = ToolCall { tool_name: name, arguments, result, call_id: requested.id, ..ToolCall::default() };
            self.add(&key, EventBody::ToolCall(call), None);
            if let Some(command) = command {
                self.add(&format!("{key}/command"), EventBody::Command(command), None);
            }
        }
    }

    fn add(&mut self, key: &str, body: EventBody, history: Option<MessageId>) {
        let mut event = SessionEvent::reconstructed(key, self.time, body);
        event.agent = self.agent.map(str::to_owned);
        self.draft.add(event, history);
    }

    fn push(&mut self, message: Value) {
        self.current = self.histories.push(self.current, message);
    }

    fn push_results(&mut self, step: &Value) {
        for (id, content) in results(step) {
            let message = match id {
                Some(id) => json!({"role": "tool", "tool_call_id": id, "content": content}),
                // The environment answered without a tool call.
                None => json!({"role": "user", "content": content}),
            };
            self.push(message);
        }
    }
}

/// Returns a step as a message of the Chat Completions API.
fn message(step: &Value, source: &str) -> Value {
    let role = if source == "agent" { "assistant" } else { source };
    let mut message = json!({"role": role, "content": step.get("message")});
    if let Some(fields) = message.as_object_mut() {
        let calls = requested(step);
        if let (false, Ok(calls)) = (calls.is_empty(), serde_json::to_value(calls)) {
            fields.insert("tool_calls".to_owned(), calls);
        }
        if let Some(reasoning) = step.get("reasoning_content") {
            fields.insert("reasoning_content".to_owned(), reasoning.clone());
        }
    }
    message
}

fn requested(step: &Value) -> Vec<RequestedCall> {
    let calls = step.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
    let call = |call: &Value| {
        let arguments = match call.get("arguments") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => "{}".to_owned(),
            Some(value) => value.to_string(),
        };
        let id = text(call, "tool_call_id").map(str::to_owned);
        Some(RequestedCall::new(id, text(call, "function_name")?.to_owned(), arguments))
    };
    calls.filter_map(call).collect()
}

fn results(step: &Value) -> impl Iterator<Item = (Option<&str>, String)> {
    let results = step.pointer("/observation/results").and_then(Value::as_array).into_iter().flatten();
    results.map(|result| (text(result, "source_call_id"), content_text(&result["content"])))
}
