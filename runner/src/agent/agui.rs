//! AG-UI: `POST {base}` with a `RunAgentInput`, and a stream of events as the answer.
//!
//! The agent executes its tools itself. `docs/protocols.md` lists the conversion of each event.

use counterproof_artifact::Case;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

use super::answer::{self, Builder, ExecutedBy, OutputFormat, ToolCall, ToolResult, unreadable};
use super::protocol::{AgentOptions, Protocol};
use super::{AnswerContext, ProtocolAdapter, RequestInput, native, streamed_answer};
use crate::failure::{Fault, Reason};

/// Types of events that are recorded without a conversion.
const RECORDED: [&str; 4] = ["STATE_SNAPSHOT", "STATE_DELTA", "STEP_STARTED", "CUSTOM"];

/// Fields of an event that differ in every answer.
const VOLATILE: [&str; 3] = ["type", "timestamp", "rawEvent"];

pub(super) struct Agui {
    pub(super) options: AgentOptions,
}

impl ProtocolAdapter for Agui {
    fn path(&self) -> &'static str {
        ""
    }

    fn accept(&self) -> &'static str {
        "text/event-stream"
    }

    fn request(&self, request_input: RequestInput<'_>) -> Result<Vec<u8>, serde_json::Error> {
        let case = request_input.case;
        let index = request_input.turn.map_or(0, |turn| turn.index);
        let history = request_input.turn.map_or(&[][..], |turn| turn.history);
        let system = self.options.system_prompt.iter().map(|text| ("system", text.as_str()));
        let history = history.iter().map(|message| (message.role, message.content.as_str()));
        let messages = system.chain(history).chain([("user", request_input.user())]).enumerate();
        let messages: Vec<_> = messages
            .map(|(number, (role, content))| json!({"id": format!("message_{}", number + 1), "role": role, "content": content}))
            .collect();
        let extra = &case.input.extra;
        let given = |field: &str, default: Value| extra.get(field).cloned().unwrap_or(default);
        let mut forwarded = self.options.request.clone();
        if let Some(model) = &self.options.model {
            forwarded.insert("model".to_owned(), model.as_str().into());
        }
        serde_json::to_vec(&json!({
            "threadId": case.id,
            "runId": format!("{}-{}-{}", request_input.run_id, case.id, index + 1),
            "state": given("state", json!({})),
            "messages": messages,
            "tools": given("tools", self.options.tools.clone().unwrap_or_default().into()),
            "context": context(case.input.context.as_ref()),
            "forwardedProps": given("forwardedProps", forwarded.into()),
        }))
    }

    fn document<'a>(&self, body: &'a [u8]) -> Cow<'a, [u8]> {
        streamed_answer::document(body, |events| json!({"events": events}))
    }

    fn answer(&self, body: &[u8], context: AnswerContext<'_>) -> Result<Case, Fault> {
        let fields = native::object(body)?;
        answer::reject_errors(&fields)?;
        let Some(Value::Array(events)) = fields.get("events") else {
            return Err(unreadable("/events", &Value::Null, "a stream of events"));
        };
        let mut run = Run::new(context, &self.options);
        for (index, event) in events.iter().enumerate() {
            run.add(index, event)?;
        }
        run.finish()
    }
}

/// Returns the context of a case as AG-UI has it: a list of descriptions and values.
fn context(context: Option<&Value>) -> Vec<Value> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match context {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Object(fields)) => {
            fields.iter().map(|(name, value)| json!({"description": name, "value": text(value)})).collect()
        }
        Some(value) => vec![json!({"description": "context", "value": text(value)})],
    }
}

/// Returns the content of a result as a text or an object, which a text may contain.
fn payload(content: &Value) -> Value {
    let parsed: Option<Value> = content.as_str().and_then(|text| serde_json::from_str(text).ok());
    match (parsed.filter(Value::is_object), content) {
        (Some(fields), _) => fields,
        (None, text_or_fields @ (Value::String(_) | Value::Object(_))) => text_or_fields.clone(),
        (None, other) => other.to_string().into(),
    }
}

/// A call whose arguments are not complete yet.
#[derive(Default)]
struct OpenCall {
    tool: Value,
    arguments: String,
    started: Value,
    /// Its id in the stream.
    id: String,
    /// Its id in the artifact, once it is complete.
    call_id: Option<String>,
}

/// The events of an answer so far.
struct Run<'a> {
    builder: Builder<'a>,
    /// In the order of arrival.
    calls: Vec<OpenCall>,
    /// The call of the latest start: later parts of a call may leave its id out.
    latest: String,
    /// The id of the latest text, and the text.
    message: Option<(Value, String)>,
    finished: Option<Value>,
}

impl<'a> Run<'a> {
    fn new(context: AnswerContext<'a>, options: &'a AgentOptions) -> Self {
        let builder = Builder::new(context, &options.risk, None);
        Self { builder, calls: Vec::new(), latest: String::new(), message: None, finished: None }
    }

    fn add(&mut self, index: usize, event: &Value) -> Result<(), Fault> {
        let Some(kind) = event["type"].as_str() else {
            return Err(unreadable(&format!("/events/{index}/type"), &event["type"], "the type of the event"));
        };
        self.builder.at(&event["timestamp"]);
        match kind {
            "RUN_ERROR" => return Err(Fault::new(Reason::AgentError, "the agent ended the run with an error event")),
            "RUN_FINISHED" => {
                self.complete_calls(index)?;
                self.finished = Some(event["result"].clone());
            }
            "TEXT_MESSAGE_START" | "TEXT_MESSAGE_CONTENT" | "TEXT_MESSAGE_CHUNK" => self.add_text(event),
            "TOOL_CALL_START" | "TOOL_CALL_ARGS" | "TOOL_CALL_CHUNK" => self.add_call_part(event),
            "TOOL_CALL_END" => self.complete_call(&self.id_of(event), index)?,
            "TOOL_CALL_RESULT" => {
                let id = self.id_of(event);
                self.complete_call(&id, index)?;
                if let Some(OpenCall { started, call_id: Some(call_id), .. }) =
                    self.calls.iter().find(|call| call.id == id)
                {
                    let times = started.as_u64().zip(event["timestamp"].as_u64());
                    let latency_ms = times.map_or(0, |(from, to)| to.saturating_sub(from));
                    let payload = Some(payload(&event["content"]));
                    self.builder.result(call_id, ToolResult { latency_ms, payload, ..ToolResult::default() });
                }
            }
            kind if RECORDED.contains(&kind) => {
                let mut item = event.clone();
                if let Value::Object(fields) = &mut item {
                    fields.retain(|field, _| !VOLATILE.contains(&field.as_str()));
                }
                self.builder.other(&format!("agui.{}", kind.to_ascii_lowercase()), &item);
            }
            _ => {}
        }
        Ok(())
    }

    fn id_of(&self, event: &Value) -> String {
        event["toolCallId"].as_str().unwrap_or(&self.latest).to_owned()
    }

    fn add_text(&mut self, event: &Value) {
        let delta = event["delta"].as_str().unwrap_or_default();
        let is_same = |id: &Value| event["messageId"].is_null() || *id == event["messageId"];
        match &mut self.message {
            Some((id, text)) if is_same(id) => text.push_str(delta),
            _ => {
                self.end_message();
                self.message = Some((event["messageId"].clone(), delta.to_owned()));
            }
        }
    }

    /// Records a text that is not the last one.
    fn end_message(&mut self) {
        if let Some((_, text)) = self.message.take().filter(|(_, text)| !text.is_empty()) {
            self.builder.message(&text);
        }
    }

    fn add_call_part(&mut self, event: &Value) {
        let id = self.id_of(event);
        let index = self.calls.iter().position(|call| call.id == id).unwrap_or_else(|| {
            self.calls.push(OpenCall { id: id.clone(), ..OpenCall::default() });
            self.calls.len() - 1
        });
        let call = &mut self.calls[index];
        if event["toolCallName"].is_string() {
            call.tool = event["toolCallName"].clone();
            call.started = event["timestamp"].clone();
        }
        call.arguments.push_str(event["delta"].as_str().unwrap_or_default());
        self.latest = id;
    }

    /// Adds a call whose arguments are complete, once.
    fn complete_call(&mut self, id: &str, index: usize) -> Result<(), Fault> {
        self.end_message();
        let open = |call: &&mut OpenCall| call.id == id && call.call_id.is_none();
        let Some(call) = self.calls.iter_mut().find(open) else { return Ok(()) };
        let pointer = format!("/events/{index}");
        let arguments = Value::from(std::mem::take(&mut call.arguments));
        let called = ToolCall { pointer: &pointer, call_id: Some(id), tool: &call.tool, arguments: &arguments };
        self.builder.call(called, ExecutedBy::Caller, Map::new())?;
        call.call_id = self.builder.latest_call().map(str::to_owned);
        Ok(())
    }

    /// Adds calls that were sent as chunks, which have no event of their end.
    fn complete_calls(&mut self, index: usize) -> Result<(), Fault> {
        let open = self.calls.iter().filter(|call| call.call_id.is_none());
        let open: Vec<_> = open.map(|call| call.id.clone()).collect();
        let message = self.message.take();
        open.iter().try_for_each(|id| self.complete_call(id, index))?;
        self.message = message;
        Ok(())
    }

    fn finish(mut self) -> Result<Case, Fault> {
        let Some(result) = self.finished.take() else {
            return Err(Fault::new(Reason::AgentError, "the stream of events ended without RUN_FINISHED"));
        };
        let text = self.message.take().map(|(_, text)| text).unwrap_or_default();
        let output = match result {
            Value::Object(content) if text.is_empty() => json!({"content_type": "json", "content": content}),
            Value::String(result) if text.is_empty() => answer::output(&result, OutputFormat::Text),
            _ => answer::output(&text, OutputFormat::Text),
        };
        self.builder.finish(Protocol::Agui, output, Map::new())
    }
}

#[cfg(test)]
mod tests {
    use counterproof_artifact::Side;
    use jiff::Timestamp;

    use super::*;

    fn read(events: &[Value]) -> Result<Value, Fault> {
        let case_id = "c1".parse().unwrap();
        let context =
            AnswerContext { case_id: &case_id, side: Side::New, received: Timestamp::UNIX_EPOCH, content_type: None };
        let agui = Agui { options: AgentOptions::default() };
        let body = events.iter().map(|event| format!("data: {event}\n\n")).collect::<Vec<_>>().concat();
        let case = agui.answer(&agui.document(body.as_bytes()), context)?;
        Ok(serde_json::to_value(case).unwrap())
    }

    fn text(id: &str, delta: &str) -> Value {
        json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": delta})
    }

    #[test]
    fn events_become_calls_results_and_the_final_output() {
        let case = read(&[
            json!({"type": "RUN_STARTED", "threadId": "c1", "runId": "r"}),
            text("m1", "Let me "),
            text("m1", "look."),
            json!({"type": "TOOL_CALL_START", "toolCallId": "a", "toolCallName": "get_order", "timestamp": 1000}),
            json!({"type": "TOOL_CALL_ARGS", "toolCallId": "a", "delta": "{\"id\":"}),
            json!({"type": "TOOL_CALL_ARGS", "toolCallId": "a", "delta": " 7}"}),
            json!({"type": "TOOL_CALL_END", "toolCallId": "a"}),
            json!({"type": "TOOL_CALL_RESULT", "toolCallId": "a", "messageId": "t", "content": "{\"total\": 50}", "timestamp": 1250}),
            json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "b", "toolCallName": "refund", "delta": "{\"amount\": 50}"}),
            json!({"type": "STATE_SNAPSHOT", "snapshot": {"step": 2}}),
            json!({"type": "TEXT_MESSAGE_CHUNK", "messageId": "m2", "delta": "Done."}),
            json!({"type": "RUN_FINISHED", "threadId": "c1", "runId": "r"}),
        ])
        .unwrap();
        let kinds: Vec<_> = case["events"].as_array().unwrap().iter().map(|event| &event["type"]).collect();
        assert_eq!(
            kinds,
            ["assistant_message", "tool_call", "tool_result", "agui.state_snapshot", "tool_call", "final_output"]
        );
        assert_eq!((&case["events"][1]["args"], &case["events"][1]["ts"]), (&json!({"id": 7}), &json!(1000)));
        assert_eq!(case["events"][2]["payload_summary"], json!({"total": 50}));
        assert_eq!((&case["events"][2]["latency_ms"], &case["events"][2]["ts"]), (&json!(250), &json!(1250)));
        let refs = |action: usize| &case["proposed_actions"][action]["evidence_refs"];
        assert_eq!((refs(0), refs(1)), (&json!([]), &json!([{"kind": "tool_result", "call_id": "a"}])));
        assert_eq!(case["final_output"]["content"], "Done.");
    }

    #[test]
    fn calls_in_chunks_keep_the_order_of_arrival() {
        let chunk = |id: &str, name: &str| json!({"type": "TOOL_CALL_CHUNK", "toolCallId": id, "toolCallName": name, "delta": "{}"});
        let finished = json!({"type": "RUN_FINISHED"});
        let case = read(&[chunk("z", "get_order"), chunk("a", "refund"), chunk("m", "notify"), finished]).unwrap();
        let tools: Vec<_> =
            case["proposed_actions"].as_array().unwrap().iter().map(|action| &action["tool_name"]).collect();
        assert_eq!(tools, ["get_order", "refund", "notify"]);
    }

    #[test]
    fn an_error_event_and_an_unfinished_run_are_failures() {
        let reason = |events: &[Value]| read(events).unwrap_err().reason;
        assert_eq!(reason(&[json!({"type": "RUN_ERROR", "message": "x"})]), Reason::AgentError);
        assert_eq!(reason(&[text("m", "Half")]), Reason::AgentError);
        let result = read(&[json!({"type": "RUN_FINISHED", "result": {"ticket": 1}})]).unwrap();
        assert_eq!(result["final_output"]["content"], json!({"ticket": 1}));
    }
}
