//! Anthropic's Messages: `POST {base}/v1/messages` with messages, and a list of content blocks as the answer.
//!
//! The formats follow the public API reference. `docs/protocols.md` lists the conversion of each field.

use std::borrow::Cow;

use counterproof_artifact::Case;
use serde_json::{Map, Value, json};

use super::answer::{self, Builder, ExecutedBy, OutputFormat, ToolCall, unreadable};
use super::dialogue::{CallKind, CallResult, Dialogue, Reply, RequestedCall, ToolDefinition};
use super::protocol::{AgentOptions, Protocol};
use super::{AnswerContext, ProtocolAdapter, RequestInput, native, streamed_answer};
use crate::failure::{Fault, Reason};

/// The version of the API that this file follows.
const VERSION: &str = "2023-06-01";

/// `max_tokens`, which the API requires, if the configuration has none.
const MAX_TOKENS: u64 = 4096;

/// Fields of the answer to copy into the artifact, with their names there.
const COPIED_FIELDS: [(&str, &str); 3] = [("id", "response_id"), ("model", "model"), ("stop_reason", "finish_reason")];

/// Anthropic Messages.
pub(super) struct AnthropicMessages {
    pub(super) options: AgentOptions,
}

impl ProtocolAdapter for AnthropicMessages {
    fn path(&self) -> &'static str {
        "v1/messages"
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("anthropic-version", VERSION)]
    }

    fn request(&self, request_input: RequestInput<'_>) -> Result<Vec<u8>, serde_json::Error> {
        let mut case_fields = Map::new();
        if !self.options.request.contains_key("max_tokens") {
            case_fields.insert("max_tokens".to_owned(), MAX_TOKENS.into());
        }
        if let Some(system) = &self.options.system_prompt {
            case_fields.insert("system".to_owned(), system.as_str().into());
        }
        case_fields.insert("messages".to_owned(), request_input.chat_messages().collect());
        self.options.request(request_input, self, case_fields)
    }

    fn document<'a>(&self, body: &'a [u8]) -> Cow<'a, [u8]> {
        streamed_answer::document(body, streamed_answer::anthropic)
    }

    fn answer(&self, body: &[u8], context: AnswerContext<'_>) -> Result<Case, Fault> {
        let fields = native::object(body)?;
        answer::reject_errors(&fields)?;
        if fields.get("type").is_some_and(|kind| kind == "error") {
            return Err(Fault::new(Reason::AgentError, "the agent answered with an error object"));
        }
        let blocks = match fields.get("content") {
            Some(Value::Array(blocks)) => blocks,
            other => return Err(unreadable("/content", other.unwrap_or(&Value::Null), "an array of content blocks")),
        };
        let mut builder = Builder::new(context, &self.options.risk, None);
        let mut text = String::new();
        for (index, block) in blocks.iter().enumerate() {
            let pointer = format!("/content/{index}");
            let Some(kind) = block["type"].as_str() else {
                return Err(unreadable(&format!("{pointer}/type"), &block["type"], "the type of the block"));
            };
            let called = ToolCall {
                pointer: &pointer,
                call_id: block["id"].as_str(),
                tool: &block["name"],
                arguments: &block["input"],
            };
            match kind {
                "text" => text.push_str(block["text"].as_str().unwrap_or_default()),
                "tool_use" => builder.call(called, ExecutedBy::Caller, Map::new())?,
                "server_tool_use" => builder.call(called, ExecutedBy::Server, Map::new())?,
                other => builder.other(&format!("anthropic.{other}"), block),
            }
        }
        let mut output = answer::output(&text, OutputFormat::Text);
        if fields.get("stop_reason").is_some_and(|reason| reason == "refusal") {
            output["refusal"] = true.into();
        }
        let mut extra_fields = answer::copy_fields(&fields, &COPIED_FIELDS);
        if let Some(usage) = fields.get("usage").filter(|usage| usage.is_object()) {
            extra_fields.insert("usage".to_owned(), contract_usage(usage));
        }
        builder.finish(Protocol::AnthropicMessages, output, extra_fields)
    }

    fn dialogue(&self) -> Option<&dyn Dialogue> {
        Some(self)
    }
}

/// Returns the usage in the form of the contract. The API does not count cached tokens as input tokens; the contract does.
fn contract_usage(usage: &Value) -> Value {
    let count = |name: &str| usage[name].as_u64();
    let cached = count("cache_read_input_tokens");
    let input = count("input_tokens")
        .map(|input| input + cached.unwrap_or_default() + count("cache_creation_input_tokens").unwrap_or_default());
    let counts = [("input_tokens", input), ("output_tokens", count("output_tokens")), ("cached_tokens", cached)];
    counts.into_iter().filter_map(|(name, count)| Some((name.to_owned(), count?.into()))).collect::<Map<_, _>>().into()
}

impl Dialogue for AnthropicMessages {
    fn reply(&self, body: &[u8]) -> Reply {
        let mut answer: Value = serde_json::from_slice(body).unwrap_or_default();
        let content = answer["content"].take();
        let blocks = content.as_array().map_or(&[][..], Vec::as_slice);
        let calls = blocks.iter().filter(|block| block["type"] == "tool_use");
        let calls = calls
            .filter_map(|block| RequestedCall::new(&block["id"], CallKind::Function, &block["name"], &block["input"]))
            .collect();
        // The API rejects a message without content.
        let messages =
            if blocks.is_empty() { Vec::new() } else { vec![json!({"role": "assistant", "content": content})] };
        Reply { messages, calls }
    }

    fn results(&self, results: &[CallResult]) -> Vec<Value> {
        let block = |result: &CallResult| {
            let mut block = json!({"type": "tool_result", "tool_use_id": result.call.id, "content": result.text});
            if result.is_error {
                block["is_error"] = true.into();
            }
            block
        };
        // All in one message: the API requires the results of an answer in the message after it.
        vec![json!({"role": "user", "content": results.iter().map(block).collect::<Vec<_>>()})]
    }

    fn definition(&self, tool: &ToolDefinition) -> Value {
        let mut definition = json!({"name": tool.name});
        if let Some(description) = &tool.description {
            definition["description"] = description.as_str().into();
        }
        definition["input_schema"] = tool.parameters.clone();
        definition
    }
}

#[cfg(test)]
mod tests {
    use counterproof_artifact::Side;
    use jiff::Timestamp;

    use super::*;

    fn read(response: &Value) -> Result<Value, Fault> {
        let case_id = "c1".parse().unwrap();
        let context =
            AnswerContext { case_id: &case_id, side: Side::New, received: Timestamp::UNIX_EPOCH, content_type: None };
        let messages = AnthropicMessages { options: AgentOptions::default() };
        let case = messages.answer(response.to_string().as_bytes(), context)?;
        Ok(serde_json::to_value(case).unwrap())
    }

    #[test]
    fn blocks_become_events_in_order() {
        let case = read(&json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m-1", "stop_reason": "tool_use",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "x"},
                {"type": "text", "text": "One moment."},
                {"type": "tool_use", "id": "toolu_1", "name": "get_order", "input": {"id": 7}},
            ],
            "usage": {"input_tokens": 10, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 5, "output_tokens": 3},
        }))
        .unwrap();
        let kinds: Vec<_> = case["events"].as_array().unwrap().iter().map(|event| &event["type"]).collect();
        assert_eq!(kinds, ["anthropic.thinking", "tool_call", "final_output"]);
        assert_eq!(case["proposed_actions"][0]["params"], json!({"id": 7}));
        assert_eq!(case["usage"], json!({"input_tokens": 105, "output_tokens": 3, "cached_tokens": 90}));
        assert_eq!((&case["finish_reason"], &case["model"]), (&json!("tool_use"), &json!("m-1")));
    }

    #[test]
    fn an_error_and_another_shape_are_rejected() {
        let reason = |response: &Value| read(response).unwrap_err().reason;
        let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}});
        assert_eq!(reason(&error), Reason::AgentError);
        assert_eq!(reason(&json!({"content": "hi"})), Reason::ProtocolViolated);
        assert_eq!(reason(&json!({"content": [{"text": "hi"}]})), Reason::ProtocolViolated);
        assert_eq!(reason(&json!({"content": [{"type": "tool_use", "input": {}}]})), Reason::ProtocolViolated);
    }
}
