//! OpenAI's Chat Completions: `POST {base}/chat/completions` with messages, and the first choice as the answer.
//!
//! The formats follow the public API reference. `docs/protocols.md` lists the conversion of each field.

use std::borrow::Cow;

use counterproof_artifact::Case;
use serde_json::{Map, Value, json};

use super::answer::{self, Builder, ExecutedBy, OutputFormat, ToolCall, unreadable};
use super::dialogue::{CallKind, CallResult, Dialogue, Reply, RequestedCall, ToolDefinition};
use super::protocol::{AgentOptions, Protocol};
use super::{AnswerContext, ProtocolAdapter, RequestInput, native, streamed_answer};
use crate::failure::Fault;

/// Fields of the answer to copy into the artifact, with their names there.
const COPIED_FIELDS: [(&str, &str); 5] = [
    ("id", "response_id"),
    ("model", "model"),
    ("created", "created"),
    ("service_tier", "service_tier"),
    ("system_fingerprint", "system_fingerprint"),
];

/// Chat Completions.
pub(super) struct OpenaiChat {
    pub(super) options: AgentOptions,
}

impl ProtocolAdapter for OpenaiChat {
    fn path(&self) -> &'static str {
        "chat/completions"
    }

    fn request(&self, request_input: RequestInput<'_>) -> Result<Vec<u8>, serde_json::Error> {
        let system = self.options.system_prompt.iter().map(|text| json!({"role": "system", "content": text}));
        let list: Vec<_> = system.chain(request_input.chat_messages()).collect();
        let mut case_fields = Map::from_iter([("messages".to_owned(), list.into())]);
        if self.options.stream && !self.options.request.contains_key("stream_options") {
            // Without it, a stream has no usage.
            case_fields.insert("stream_options".to_owned(), json!({"include_usage": true}));
        }
        self.options.request(request_input, self, case_fields)
    }

    fn document<'a>(&self, body: &'a [u8]) -> Cow<'a, [u8]> {
        streamed_answer::document(body, streamed_answer::chat)
    }

    fn answer(&self, body: &[u8], context: AnswerContext<'_>) -> Result<Case, Fault> {
        let fields = native::object(body)?;
        // Before the fields are read: an error object lacks them, and would look like a violation of the protocol.
        answer::reject_errors(&fields)?;
        let Some(Value::Object(choice)) = fields.get("choices").and_then(|choices| choices.get(0)) else {
            return Err(unreadable("/choices/0", &Value::Null, "a choice with the agent's message"));
        };
        let message = match choice.get("message") {
            Some(Value::Object(message)) => message,
            other => return Err(unreadable("/choices/0/message", other.unwrap_or(&Value::Null), "a message")),
        };
        let mut builder = Builder::new(context, &self.options.risk, fields.get("created"));
        calls(message, &mut builder)?;
        let output = self.output(message)?;
        let mut extra_fields = answer::copy_fields(&fields, &COPIED_FIELDS);
        extra_fields.extend(answer::from_openai(&fields));
        extra_fields.extend(answer::copy_fields(choice, &[("finish_reason", "finish_reason")]));
        if let Some(others) = fields["choices"].as_array().filter(|choices| choices.len() > 1) {
            extra_fields.insert("other_choices".to_owned(), others[1..].into());
        }
        builder.finish(Protocol::OpenaiChat, output, extra_fields)
    }

    fn dialogue(&self) -> Option<&dyn Dialogue> {
        Some(self)
    }
}

impl Dialogue for OpenaiChat {
    fn reply(&self, body: &[u8]) -> Reply {
        let answer: Value = serde_json::from_slice(body).unwrap_or_default();
        let message = &answer["choices"][0]["message"];
        let mut own = Map::from_iter([("role".to_owned(), "assistant".into())]);
        own.insert("content".to_owned(), message["content"].clone());
        let mut listed = message["tool_calls"].as_array().cloned().unwrap_or_default();
        for (index, call) in listed.iter_mut().enumerate() {
            // A result names its call, so a call that the server left without an id gets one.
            if call["id"].as_str().is_none_or(str::is_empty) {
                call["id"] = format!("call_{}", index + 1).into();
            }
        }
        let calls = listed.iter().filter_map(|call| match &call["custom"] {
            Value::Null => {
                let function = &call["function"];
                RequestedCall::new(&call["id"], CallKind::Function, &function["name"], &function["arguments"])
            }
            custom => RequestedCall::new(&call["id"], CallKind::Custom, &custom["name"], &custom["input"]),
        });
        let calls: Vec<_> = calls.collect();
        if !listed.is_empty() {
            own.insert("tool_calls".to_owned(), listed.into());
        }
        Reply { messages: vec![own.into()], calls }
    }

    fn results(&self, results: &[CallResult]) -> Vec<Value> {
        let message =
            |result: &CallResult| json!({"role": "tool", "tool_call_id": result.call.id, "content": result.text});
        results.iter().map(message).collect()
    }

    fn definition(&self, tool: &ToolDefinition) -> Value {
        let mut function = json!({"name": tool.name});
        if let Some(description) = &tool.description {
            function["description"] = description.as_str().into();
        }
        function["parameters"] = tool.parameters.clone();
        json!({"type": "function", "function": function})
    }
}

impl OpenaiChat {
    fn output(&self, message: &Map<String, Value>) -> Result<Value, Fault> {
        if let Some(refusal) = message.get("refusal").and_then(Value::as_str) {
            return Ok(json!({"content_type": "text", "content": refusal, "refusal": true}));
        }
        let text = match message.get("content") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            // Some servers send content parts, which the API defines for requests only.
            Some(Value::Array(parts)) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
            Some(other) => return Err(unreadable("/choices/0/message/content", other, "a text, or null")),
        };
        let format = self.options.request.get("response_format").and_then(|format| format["type"].as_str());
        Ok(answer::output(&text, OutputFormat::from_type(format)))
    }
}

/// Adds the tool calls of a message in order: functions, custom tools, and the legacy single function call.
fn calls(message: &Map<String, Value>, builder: &mut Builder<'_>) -> Result<(), Fault> {
    let null = Value::Null;
    let listed = match message.get("tool_calls") {
        None | Some(Value::Null) => &[][..],
        Some(Value::Array(calls)) => calls,
        Some(other) => return Err(unreadable("/choices/0/message/tool_calls", other, "an array of calls")),
    };
    for (index, call) in listed.iter().enumerate() {
        let kind = if call["type"] == "custom" { "custom" } else { "function" };
        let arguments = if kind == "custom" { &call[kind]["input"] } else { &call[kind]["arguments"] };
        let pointer = format!("/choices/0/message/tool_calls/{index}/{kind}");
        let called = ToolCall { pointer: &pointer, call_id: call["id"].as_str(), tool: &call[kind]["name"], arguments };
        builder.call(called, ExecutedBy::Caller, Map::new())?;
    }
    match message.get("function_call") {
        // Only without `tool_calls`, so that a call in both forms is one action.
        Some(call @ Value::Object(_)) if listed.is_empty() => {
            let arguments = call.get("arguments").unwrap_or(&null);
            let pointer = "/choices/0/message/function_call";
            let called = ToolCall { pointer, call_id: None, tool: &call["name"], arguments };
            builder.call(called, ExecutedBy::Caller, Map::new())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use counterproof_artifact::{RiskLevel, Side};
    use jiff::Timestamp;

    use super::*;
    use crate::failure::Reason;

    fn read(chat: &OpenaiChat, response: &Value) -> Result<Value, Fault> {
        let case_id = "c1".parse().unwrap();
        let received = Timestamp::from_millisecond(1_767_600_000_123).unwrap();
        let context = AnswerContext { case_id: &case_id, side: Side::New, received, content_type: None };
        let case = chat.answer(response.to_string().as_bytes(), context)?;
        Ok(serde_json::to_value(case).unwrap())
    }

    fn chat() -> OpenaiChat {
        let risk = [("issue_*".to_owned(), RiskLevel::High)].into_iter().collect();
        OpenaiChat { options: AgentOptions { risk, ..AgentOptions::default() } }
    }

    fn response(message: &Value, finish_reason: &str) -> Value {
        json!({
            "id": "chatcmpl-1", "object": "chat.completion", "created": 1_767_600_000, "model": "m-1",
            "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
        })
    }

    #[test]
    fn a_text_is_the_final_output() {
        let message = json!({"role": "assistant", "content": "Done.", "refusal": null});
        let case = read(&chat(), &response(&message, "stop")).unwrap();
        assert_eq!(case["final_output"], json!({"content_type": "text", "content": "Done."}));
        let event =
            json!({"type": "final_output", "ts": 1_767_600_000_000_u64, "content_type": "text", "content": "Done."});
        assert_eq!(case["events"], json!([event]));
        assert_eq!((&case["protocol"], &case["model"]), (&json!("openai-chat"), &json!("m-1")));
        assert_eq!((&case["finish_reason"], &case["usage"]["total_tokens"]), (&json!("stop"), &json!(12)));
    }

    #[test]
    fn tool_calls_become_actions_and_events() {
        let call = |id: &str, name: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
        let calls = [call("call_a", "issue_refund", "{\"amount\": 50}"), call("call_a", "lookup", "{\"cut")];
        let message = json!({"role": "assistant", "content": null, "tool_calls": calls});
        let case = read(&chat(), &response(&message, "tool_calls")).unwrap();
        assert_eq!(
            case["proposed_actions"],
            json!([
                {"action_id": "call_a", "action_type": "issue_refund", "tool_name": "issue_refund",
                 "params": {"amount": 50}, "risk_level": "high", "risk_tags": [], "evidence_refs": []},
                {"action_id": "call_2", "action_type": "lookup", "tool_name": "lookup",
                 "params": {"raw_arguments": "{\"cut"}, "risk_level": "unknown", "risk_tags": [], "evidence_refs": [],
                 "arguments_are_an_object": false},
            ])
        );
        let kinds: Vec<_> = case["events"].as_array().unwrap().iter().map(|event| &event["type"]).collect();
        assert_eq!(kinds, ["tool_call", "tool_call"], "no results, and no final output without a text");
        assert_eq!(case["events"][1]["call_id"], "call_2", "ids are unique");
    }

    #[test]
    fn a_refusal_and_a_truncated_answer_are_marked() {
        let message = json!({"role": "assistant", "content": null, "refusal": "I cannot help."});
        let case = read(&chat(), &response(&message, "stop")).unwrap();
        assert_eq!(
            (&case["final_output"]["content"], &case["final_output"]["refusal"]),
            (&json!("I cannot help."), &json!(true))
        );
        let case = read(&chat(), &response(&json!({"content": "The ans"}), "length")).unwrap();
        assert_eq!((&case["status"], &case["finish_reason"]), (&json!("ok"), &json!("length")));
    }

    #[test]
    fn an_error_object_and_another_shape_are_rejected() {
        let reason = |response: Value| read(&chat(), &response).unwrap_err().reason;
        assert_eq!(reason(json!({"error": {"message": "overloaded"}})), Reason::AgentError);
        assert_eq!(reason(json!({"choices": []})), Reason::ProtocolViolated);
        assert_eq!(reason(json!({"choices": [{"message": "hi"}]})), Reason::ProtocolViolated);
        assert_eq!(reason(response(&json!({"tool_calls": [{"id": "a"}]}), "stop")), Reason::ProtocolViolated);
        assert_eq!(reason(response(&json!({"content": 7}), "stop")), Reason::ProtocolViolated);
    }

    #[test]
    fn an_answer_without_a_time_has_the_time_of_receipt() {
        let case = read(&chat(), &json!({"choices": [{"message": {"content": "Done."}}], "error": null})).unwrap();
        assert_eq!(case["events"][0]["ts"], 1_767_600_000_123_u64);
    }

    #[test]
    fn requested_json_is_json() {
        let mut chat = chat();
        chat.options.request.insert("response_format".to_owned(), json!({"type": "json_object"}));
        let case = read(&chat, &response(&json!({"content": "{\"ticket\": 1}"}), "stop")).unwrap();
        assert_eq!(case["final_output"], json!({"content_type": "json", "content": {"ticket": 1}}));
    }
}
