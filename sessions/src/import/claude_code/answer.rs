//! Joins the lines of an answer: each has one of its content blocks.

use serde_json::{Map, Value, json};

use super::content::{ToolUse, text_block};
use crate::event::{Api, LlmCall, LlmRequest, LlmResponse, RequestedCall, Usage};

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
            if value.as_u64() >= known.get(name).and_then(Value::as_u64) {
                known.insert(name.clone(), value.clone());
            }
        }
    }

    pub(super) fn call(self) -> LlmCall {
        let texts: Vec<&str> = self.content.iter().filter_map(|block| text_block(block)).collect();
        let content = (!texts.is_empty()).then(|| texts.concat());
        let tool_calls = self.content.iter().filter(|block| block["type"] == "tool_use").filter_map(|block| {
            let tool = ToolUse::from_block(block)?;
            Some(RequestedCall::new(Some(tool.id.to_owned()), tool.name.to_owned(), tool.input.to_string()))
        });
        let tool_calls = tool_calls.collect();
        let usage = self.usage.as_ref().and_then(|usage| {
            let number = |name: &str| usage.get(name).and_then(Value::as_u64);
            let parts = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"].map(number);
            let prompt = parts.iter().any(Option::is_some);
            let prompt = prompt.then(|| parts.into_iter().flatten().fold(0, u64::saturating_add));
            let output = number("output_tokens");
            (prompt.is_some() || output.is_some())
                .then(|| Usage::new(prompt, output, number("cache_read_input_tokens")))
        });
        let model = self.model.map(str::to_owned);
        let finish_reason = self.stop_reason.map(str::to_owned);
        let body = json!({
            "id": self.id, "type": "message", "role": "assistant", "model": self.model, "content": self.content,
            "stop_reason": self.stop_reason, "usage": self.usage,
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
