//! The content of messages: the blocks, the tool calls in them, and answers, of which each line has one block.

use serde_json::{Map, Value, json};

use crate::event::{Api, LlmCall, LlmRequest, LlmResponse, RequestedCall};
use crate::protocol::{joined_text, token_count, usage_of};

pub(super) fn blocks(content: Option<&Value>) -> impl Iterator<Item = &Value> {
    content.and_then(Value::as_array).into_iter().flatten()
}

/// A request of the model for a tool call.
#[derive(Debug, Clone, Copy)]
pub(super) struct ToolUse<'a> {
    pub(super) id: &'a str,
    pub(super) name: &'a str,
    pub(super) input: &'a Value,
}

impl<'a> ToolUse<'a> {
    pub(super) fn from_block(block: &'a Value) -> Option<Self> {
        let kind = block.get("type")?.as_str()?;
        if !matches!(kind, "tool_use" | "server_tool_use" | "mcp_tool_use") {
            return None;
        }
        Some(Self {
            id: block.get("id").and_then(Value::as_str).unwrap_or_default(),
            name: block.get("name")?.as_str()?,
            input: block.get("input").unwrap_or(&Value::Null),
        })
    }
}

/// An answer of a model, joined from the lines of its content blocks.
pub(super) struct Answer<'a> {
    pub(super) content: Vec<Value>,
    model: Option<&'a str>,
    id: Option<&'a Value>,
    stop_reason: Option<&'a str>,
    usage: Option<Map<String, Value>>,
    cost: Option<f64>,
}

impl<'a> Answer<'a> {
    pub(super) fn new(lines: impl Iterator<Item = &'a Value>) -> Self {
        let mut answer =
            Self { content: Vec::new(), model: None, id: None, stop_reason: None, usage: None, cost: None };
        for line in lines {
            let message = line.get("message").unwrap_or(&Value::Null);
            match message.get("content") {
                Some(Value::Array(blocks)) => answer.content.extend(blocks.iter().cloned()),
                Some(Value::String(text)) => answer.content.push(json!({"type": "text", "text": text})),
                _ => {}
            }
            answer.model = answer.model.or_else(|| message.get("model")?.as_str());
            answer.id = answer.id.or_else(|| message.get("id"));
            answer.stop_reason = message.get("stop_reason").and_then(Value::as_str).or(answer.stop_reason);
            answer.cost = answer.cost.or_else(|| line.get("costUSD")?.as_f64());
            if let Some(Value::Object(usage)) = message.get("usage") {
                answer.add_usage(usage);
            }
        }
        answer
    }

    /// Each line repeats the usage of the whole answer, as far as it was known when the line was written.
    fn add_usage(&mut self, usage: &Map<String, Value>) {
        let Some(known) = &mut self.usage else {
            self.usage = Some(usage.clone());
            return;
        };
        for (name, value) in usage {
            if token_count(value) >= known.get(name).and_then(token_count) {
                known.insert(name.clone(), value.clone());
            }
        }
    }

    pub(super) fn call(self) -> LlmCall {
        let blocks = Value::Array(self.content);
        let content = joined_text(&blocks);
        let tool_calls =
            blocks.as_array().into_iter().flatten().filter(|block| block["type"] == "tool_use").filter_map(|block| {
                let tool = ToolUse::from_block(block)?;
                Some(RequestedCall::new(Some(tool.id.to_owned()), tool.name.to_owned(), tool.input.to_string()))
            });
        let tool_calls = tool_calls.collect();
        let known = self.usage.map_or(Value::Null, Value::Object);
        let usage = usage_of(Api::AnthropicMessages, &known);
        let model = self.model.map(str::to_owned);
        let finish_reason = self.stop_reason.map(str::to_owned);
        let body = json!({
            "id": self.id, "type": "message", "role": "assistant", "model": self.model, "content": blocks,
            "stop_reason": self.stop_reason, "usage": known,
        });
        LlmCall {
            request: LlmRequest {
                api: Some(Api::AnthropicMessages),
                model: model.clone(),
                messages: json!([]),
                ..LlmRequest::default()
            },
            response: Some(LlmResponse { content, tool_calls, usage, finish_reason, model, body }),
            latency_ms: None,
            cost: self.cost,
        }
    }
}
