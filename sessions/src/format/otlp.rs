//! A session as OTLP JSON, with the names of OpenTelemetry's conventions for generative AI.
//!
//! The session is a span `invoke_agent`; below it, each model call is a span `chat` and each tool call a span `execute_tool`.
//! The other records have no convention and are events of the session's span. Ids follow from the ids of the records, so the
//! same session gives the same document.

use counterproof_artifact::Sha256Digest;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::event::{Api, EventBody, LlmCall, SessionEvent, ToolCall};
use crate::message::{MessagePart, PartContent, history_parts, instruction_parts, response_parts};
use crate::session::{Origin, SessionHead, SessionStatus};

/// The version of the conventions whose names are used.
const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.41.0";

const INTERNAL: u8 = 1;
const CLIENT: u8 = 3;
const ERROR: u8 = 2;

/// Whether the texts of messages and tools are exported. The conventions leave them out by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtlpContent {
    Excluded,
    Included,
}

/// Returns a session as a document of the OTLP/JSON encoding (`ExportTraceServiceRequest`).
pub fn otlp(head: &SessionHead, events: &[SessionEvent], content: OtlpContent) -> Value {
    let trace_id = Sha256Digest::from_bytes(head.session_id.as_bytes()).to_string()[..32].to_owned();
    let export = Export { head, trace_id, content };
    let mut spans = vec![export.session(events)];
    spans.extend(events.iter().filter_map(|event| match &event.body {
        EventBody::LlmCall(call) => Some(export.model_call(event, call)),
        EventBody::ToolCall(call) => Some(export.tool_call(event, call)),
        _ => None,
    }));
    let mut resource = Attributes::default();
    resource.text("service.name", head.origin.word());
    json!({"resourceSpans": [{
        "resource": {"attributes": resource.0},
        "scopeSpans": [{
            "scope": {"name": "counterproof", "version": env!("CARGO_PKG_VERSION")},
            "spans": spans,
            "schemaUrl": SCHEMA_URL,
        }],
    }]})
}

struct Export<'a> {
    head: &'a SessionHead,
    trace_id: String,
    content: OtlpContent,
}

/// A span before it is written.
struct Span<'a> {
    key: &'a str,
    name: String,
    kind: u8,
    begin: Timestamp,
    end: Timestamp,
    attributes: Attributes,
    /// The message of a failure.
    error: Option<String>,
}

impl Export<'_> {
    fn session(&self, events: &[SessionEvent]) -> Value {
        let head = self.head;
        let mut attributes = self.common("invoke_agent");
        attributes.text("gen_ai.agent.name", head.workflow.as_deref().unwrap_or(head.origin.word()));
        attributes.text("gen_ai.provider.name", self.session_provider(events));
        let failure = match head.status {
            SessionStatus::Failed => Some("the session failed"),
            SessionStatus::Interrupted => Some("the session was interrupted"),
            SessionStatus::Running | SessionStatus::Completed | SessionStatus::Paused => None,
        };
        if failure.is_some() {
            attributes.text("error.type", head.status.word());
        }
        let last = events.iter().map(|event| end(event.timestamp, latency(event))).max();
        let span = Span {
            key: "session",
            name: format!("invoke_agent {}", head.workflow.as_deref().unwrap_or(head.origin.word())),
            kind: INTERNAL,
            begin: head.started_at,
            end: head.ended_at.into_iter().chain(last).max().unwrap_or(head.started_at),
            attributes,
            error: failure.map(str::to_owned),
        };
        let mut span = self.span(span, None);
        let others: Vec<_> = events.iter().filter_map(|event| self.span_event(event)).collect();
        if !others.is_empty() {
            span["events"] = Value::Array(others);
        }
        span
    }

    fn model_call(&self, event: &SessionEvent, call: &LlmCall) -> Value {
        let (request, response) = (&call.request, call.response.as_ref());
        let mut attributes = self.common("chat");
        attributes.text("gen_ai.provider.name", provider(self.head.origin, call));
        attributes.agent(event);
        if let Some(model) = &request.model {
            attributes.text("gen_ai.request.model", model);
        }
        attributes.integer("gen_ai.request.max_tokens", request.max_tokens.as_u64());
        attributes.number("gen_ai.request.temperature", request.temperature.as_f64());
        attributes.number("gen_ai.request.top_p", request.body["top_p"].as_f64());
        attributes.integer("gen_ai.request.seed", request.body["seed"].as_u64());
        if let Some(stream) = request.body["stream"].as_bool() {
            attributes.add("gen_ai.request.stream", json!({ "boolValue": stream }));
        }
        if let Some(response) = response {
            if let Some(id) = response.body["id"].as_str() {
                attributes.text("gen_ai.response.id", id);
            }
            if let Some(model) = &response.model {
                attributes.text("gen_ai.response.model", model);
            }
            if let Some(reason) = &response.finish_reason {
                let reasons = json!({"arrayValue": {"values": [{"stringValue": reason}]}});
                attributes.add("gen_ai.response.finish_reasons", reasons);
            }
            let usage = response.usage.unwrap_or_default();
            attributes.integer("gen_ai.usage.input_tokens", usage.prompt_tokens);
            attributes.integer("gen_ai.usage.output_tokens", usage.completion_tokens);
            attributes.integer("gen_ai.usage.cache_read.input_tokens", usage.cached_tokens);
        }
        if let Some(error) = &event.error {
            attributes
                .text("error.type", &error.status.map_or_else(|| error.kind.clone(), |status| status.to_string()));
        }
        if self.content == OtlpContent::Included {
            attributes.json("gen_ai.system_instructions", &parts_json(&instruction_parts(request)));
            attributes.json("gen_ai.input.messages", &messages(history_parts(&request.messages)));
            let finish_reason = response.and_then(|response| response.finish_reason.as_deref());
            let mut output = messages(response.map(response_parts).unwrap_or_default());
            for message in &mut output {
                // Required in the answer; the protocols have no word for a stream that was cut.
                message["finish_reason"] = json!(finish_reason.unwrap_or("error"));
            }
            attributes.json("gen_ai.output.messages", &output);
            if let Value::Array(tools) = &request.tools {
                attributes.json("gen_ai.tool.definitions", tools);
            }
        }
        let name = request.model.as_ref().map_or_else(|| "chat".to_owned(), |model| format!("chat {model}"));
        let error = event.error.as_ref().map(|error| error.message.clone());
        let span = Span {
            key: event.event_id.as_str(),
            name,
            kind: CLIENT,
            begin: event.timestamp,
            end: end(event.timestamp, call.latency_ms),
            attributes,
            error,
        };
        self.span(span, Some("session"))
    }

    fn tool_call(&self, event: &SessionEvent, call: &ToolCall) -> Value {
        let mut attributes = self.common("execute_tool");
        attributes.agent(event);
        attributes.text("gen_ai.tool.name", &call.tool_name);
        attributes.text("gen_ai.tool.type", "function");
        if let Some(id) = &call.call_id {
            attributes.text("gen_ai.tool.call.id", id);
        }
        let has_failed = event.error.is_some() || call.result.success == Some(false);
        if has_failed {
            let kind = event.error.as_ref().map_or("tool_error", |error| &error.kind);
            attributes.text("error.type", kind);
        }
        let is_included = self.content == OtlpContent::Included;
        if is_included {
            attributes.add("gen_ai.tool.call.arguments", json!({"stringValue": call.arguments.to_string()}));
            if let Some(result) = &call.result.content {
                attributes.text("gen_ai.tool.call.result", result);
            }
        }
        // The message of a tool is content, and an error without one is an error too.
        let message = call.result.error.clone().filter(|_| is_included).unwrap_or_default();
        let message = event.error.as_ref().map_or(message, |error| error.message.clone());
        let span = Span {
            key: event.event_id.as_str(),
            name: format!("execute_tool {}", call.tool_name),
            kind: INTERNAL,
            begin: event.timestamp,
            end: end(event.timestamp, call.latency_ms),
            attributes,
            error: has_failed.then_some(message),
        };
        self.span(span, Some("session"))
    }

    fn span_event(&self, event: &SessionEvent) -> Option<Value> {
        let is_included = self.content == OtlpContent::Included;
        let mut attributes = Attributes::default();
        match &event.body {
            EventBody::LlmCall(_) | EventBody::ToolCall(_) => return None,
            EventBody::Command(command) => {
                attributes.signed("process.exit.code", command.exit_code);
                if let Some(line) = command.command.as_ref().filter(|_| is_included) {
                    attributes.text("process.command_line", &line.text());
                }
            }
            EventBody::FileOperation(file) if is_included => {
                attributes.text("file.path", &file.path);
                let operation = serde_json::to_value(file.operation).unwrap_or_default();
                attributes.text("counterproof.file.operation", operation.as_str().unwrap_or_default());
            }
            EventBody::StateTransition(transition) => {
                attributes.text("counterproof.state.from", &transition.from_state);
                attributes.text("counterproof.state.to", &transition.to_state);
                attributes.text("counterproof.state.trigger", &transition.trigger);
            }
            EventBody::Checkpoint(checkpoint) => {
                attributes.text("counterproof.checkpoint.id", &checkpoint.checkpoint_id);
            }
            EventBody::FileOperation(_) | EventBody::Opaque(_) => {}
        }
        Some(json!({
            "timeUnixNano": nanoseconds(event.timestamp),
            "name": format!("counterproof.{}", event.body.kind()),
            "attributes": attributes.0,
        }))
    }

    fn common(&self, operation: &str) -> Attributes {
        let mut attributes = Attributes::default();
        attributes.text("gen_ai.operation.name", operation);
        attributes.text("gen_ai.conversation.id", &self.head.session_id);
        attributes
    }

    fn session_provider(&self, events: &[SessionEvent]) -> &'static str {
        let call = events.iter().find_map(|event| match &event.body {
            EventBody::LlmCall(call) => Some(call),
            _ => None,
        });
        call.map_or_else(|| provider_of_origin(self.head.origin), |call| provider(self.head.origin, call))
    }

    fn span_id(&self, key: &str) -> String {
        // With the session, because an id of a record is unique in its session only.
        Sha256Digest::from_bytes(format!("{}\n{key}", self.head.session_id).as_bytes()).to_string()[..16].to_owned()
    }

    fn span(&self, span: Span<'_>, parent: Option<&str>) -> Value {
        let mut fields = json!({
            "traceId": self.trace_id,
            "spanId": self.span_id(span.key),
            "name": span.name,
            "kind": span.kind,
            "startTimeUnixNano": nanoseconds(span.begin),
            "endTimeUnixNano": nanoseconds(span.end.max(span.begin)),
            "attributes": span.attributes.0,
        });
        if let Some(parent) = parent {
            fields["parentSpanId"] = json!(self.span_id(parent));
        }
        if let Some(message) = span.error {
            fields["status"] = json!({"code": ERROR, "message": message});
        }
        fields
    }
}

fn provider(origin: Origin, call: &LlmCall) -> &'static str {
    let model = call.request.model.as_deref().unwrap_or_default().to_ascii_lowercase();
    let model = model.rsplit('/').next().unwrap_or_default();
    match call.request.api {
        // Other vendors speak this protocol, so the model decides first.
        _ if model.starts_with("claude") => "anthropic",
        _ if model.starts_with("gemini") => "gcp.gemini",
        _ if model.starts_with("deepseek") => "deepseek",
        _ if model.starts_with("mistral") || model.starts_with("codestral") => "mistral_ai",
        _ if model.starts_with("grok") => "x_ai",
        Some(Api::AnthropicMessages) => "anthropic",
        Some(Api::OpenaiChat | Api::OpenaiResponses) => "openai",
        None => provider_of_origin(origin),
    }
}

const fn provider_of_origin(origin: Origin) -> &'static str {
    match origin {
        Origin::ClaudeCode => "anthropic",
        Origin::Codex => "openai",
        // The word of the conventions for a value that is not listed.
        Origin::Record | Origin::Workflow | Origin::Otlp | Origin::Openinference | Origin::Atif => "_OTHER",
    }
}

/// Returns parts as messages: adjacent parts of one role are one message.
fn messages(parts: Vec<MessagePart>) -> Vec<Value> {
    let mut messages: Vec<Value> = Vec::new();
    for part in parts {
        let content = part_json(&part);
        match messages.last_mut() {
            Some(last) if last["role"] == part.role.as_str() => {
                if let Some(parts) = last["parts"].as_array_mut() {
                    parts.push(content);
                }
            }
            _ => messages.push(json!({"role": part.role, "parts": [content]})),
        }
    }
    messages
}

fn parts_json(parts: &[MessagePart]) -> Vec<Value> {
    parts.iter().map(part_json).collect()
}

fn part_json(part: &MessagePart) -> Value {
    match &part.content {
        PartContent::Text(text) => json!({"type": "text", "content": text}),
        PartContent::Reasoning(text) => json!({"type": "reasoning", "content": text}),
        PartContent::ToolCall { id, name, arguments } => {
            json!({"type": "tool_call", "id": id, "name": name, "arguments": arguments})
        }
        PartContent::ToolResult { id, text, .. } => json!({"type": "tool_call_response", "id": id, "response": text}),
        PartContent::Other(value) => {
            let mut fields = value.as_object().cloned().unwrap_or_default();
            if fields.is_empty() {
                fields.insert("content".to_owned(), value.clone());
            }
            fields.entry("type").or_insert_with(|| json!("unknown"));
            Value::Object(fields)
        }
    }
}

fn latency(event: &SessionEvent) -> Option<u64> {
    match &event.body {
        EventBody::LlmCall(call) => call.latency_ms,
        EventBody::ToolCall(call) => call.latency_ms,
        EventBody::Command(command) => command.latency_ms,
        _ => None,
    }
}

fn end(begin: Timestamp, latency_ms: Option<u64>) -> Timestamp {
    let millis = i64::try_from(latency_ms.unwrap_or_default()).unwrap_or(i64::MAX);
    begin.checked_add(jiff::SignedDuration::from_millis(millis)).unwrap_or(begin)
}

/// A 64-bit integer of this encoding is a text. Times before 1970 cannot be stated.
fn nanoseconds(time: Timestamp) -> String {
    u64::try_from(time.as_nanosecond()).unwrap_or_default().to_string()
}

#[derive(Default)]
struct Attributes(Vec<Value>);

impl Attributes {
    fn add(&mut self, key: &str, value: Value) {
        self.0.push(Value::Object(Map::from_iter([("key".to_owned(), json!(key)), ("value".to_owned(), value)])));
    }

    fn text(&mut self, key: &str, text: &str) {
        self.add(key, json!({ "stringValue": text }));
    }

    fn integer(&mut self, key: &str, number: Option<u64>) {
        self.signed(key, number.and_then(|number| i64::try_from(number).ok()));
    }

    fn signed(&mut self, key: &str, number: Option<i64>) {
        if let Some(number) = number {
            self.add(key, json!({"intValue": number.to_string()}));
        }
    }

    fn number(&mut self, key: &str, number: Option<f64>) {
        if let Some(number) = number {
            self.add(key, json!({ "doubleValue": number }));
        }
    }

    /// Adds a list as JSON text, which the conventions allow for attributes of spans.
    fn json(&mut self, key: &str, values: &[Value]) {
        if !values.is_empty() {
            self.text(key, &Value::Array(values.to_vec()).to_string());
        }
    }

    fn agent(&mut self, event: &SessionEvent) {
        if let Some(agent) = &event.agent {
            self.text("gen_ai.agent.name", agent);
        }
    }
}
