//! The messages of a model's history in one form, whichever protocol wrote them, and each of them once.
//!
//! A request repeats the whole history. A [`Conversation`] returns only what earlier requests and answers did not have.

use std::collections::HashMap;

use counterproof_artifact::Sha256Digest;
use serde_json::Value;

use crate::event::{LlmRequest, LlmResponse};

/// A part of a message.
#[derive(Debug, Clone, PartialEq)]
pub struct MessagePart {
    /// The role as the protocol names it, such as `user`, `assistant` or `tool`.
    pub role: String,
    pub content: PartContent,
}

#[derive(Debug, Clone, PartialEq)]
pub enum PartContent {
    Text(String),
    /// What the model wrote for itself.
    Reasoning(String),
    ToolCall {
        id: Option<String>,
        name: String,
        /// An object, or a text where the model wrote invalid JSON.
        arguments: Value,
    },
    ToolResult {
        id: Option<String>,
        text: String,
        is_error: bool,
    },
    /// An image, or a kind that is not known.
    Other(Value),
}

impl MessagePart {
    fn new(role: &str, content: PartContent) -> Self {
        Self { role: role.to_owned(), content }
    }

    /// Returns whether the model wrote it.
    pub fn is_of_model(&self) -> bool {
        matches!(self.role.as_str(), "assistant" | "agent" | "model")
    }

    /// Equal for parts that show the same, also if one is in an answer and the other in a later history.
    fn key(&self) -> Sha256Digest {
        let text = |kind: &str, text: &str| format!("{kind}\n{}", text.trim());
        let key = match &self.content {
            PartContent::ToolCall { id: Some(id), .. } => text("call", id),
            PartContent::ToolResult { id: Some(id), text: result, .. } => format!("result {id}\n{}", result.trim()),
            PartContent::ToolCall { id: None, name, arguments } => {
                text(&format!("call {name}"), &arguments.to_string())
            }
            PartContent::ToolResult { id: None, text: result, .. } => text("result", result),
            PartContent::Text(words) => text(if self.is_of_model() { "assistant" } else { &self.role }, words),
            PartContent::Reasoning(words) => text("reasoning", words),
            PartContent::Other(value) => text(&self.role, &value.to_string()),
        };
        Sha256Digest::from_bytes(key.as_bytes())
    }
}

/// Returns the parts of a history: of a list of messages, or of the text that the Responses API accepts instead.
pub fn history_parts(messages: &Value) -> Vec<MessagePart> {
    match messages {
        Value::Null => Vec::new(),
        Value::Array(messages) => messages.iter().flat_map(message_parts).collect(),
        message => message_parts(message),
    }
}

/// Returns the parts of the instructions that precede the history, which two protocols send outside of it.
pub fn instruction_parts(request: &LlmRequest) -> Vec<MessagePart> {
    let instructions = [&request.body["system"], &request.body["instructions"]];
    instructions.into_iter().flat_map(|content| content_parts("system", content)).collect()
}

fn message_parts(message: &Value) -> Vec<MessagePart> {
    let Value::Object(fields) = message else { return content_parts("user", message) };
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    let role = text("role").unwrap_or("unknown");
    if let Some(item) = text("type").and_then(|kind| item(kind, message)) {
        return vec![item];
    }
    if role == "tool" && (fields.contains_key("tool_call_id") || !fields.contains_key("parts")) {
        let id = text("tool_call_id").map(str::to_owned);
        let content = fields.get("content").unwrap_or(&Value::Null);
        return vec![MessagePart::new(
            role,
            PartContent::ToolResult { id, text: content_text(content), is_error: false },
        )];
    }
    let mut parts = Vec::new();
    for name in ["reasoning_content", "reasoning"] {
        parts.extend(text(name).map(|words| MessagePart::new(role, PartContent::Reasoning(words.to_owned()))));
    }
    for name in ["content", "parts"] {
        parts.extend(fields.get(name).into_iter().flat_map(|content| content_parts(role, content)));
    }
    for call in fields.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
        let function = &call["function"];
        let name = function["name"].as_str().or_else(|| call["name"].as_str()).unwrap_or_default();
        let arguments = [&function["arguments"], &call["arguments"]].into_iter().find(|value| !value.is_null());
        parts.push(tool_call(role, &call["id"], name, arguments.unwrap_or(&Value::Null)));
    }
    if parts.is_empty() && !fields.contains_key("content") && !fields.contains_key("parts") {
        parts.push(MessagePart::new(role, PartContent::Other(message.clone())));
    }
    parts
}

/// Returns an item of the Responses API that is not a message.
fn item(kind: &str, item: &Value) -> Option<MessagePart> {
    Some(match kind {
        "function_call" | "custom_tool_call" => {
            let arguments = if item["arguments"].is_null() { &item["input"] } else { &item["arguments"] };
            tool_call("assistant", &item["call_id"], item["name"].as_str().unwrap_or_default(), arguments)
        }
        "local_shell_call" => tool_call("assistant", &item["call_id"], "local_shell", &item["action"]),
        "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
            let id = item["call_id"].as_str().map(str::to_owned);
            let result = PartContent::ToolResult { id, text: content_text(&item["output"]), is_error: false };
            MessagePart::new("tool", result)
        }
        "reasoning" => {
            let texts = ["summary", "content"].map(|name| content_text(&item[name]));
            let words: Vec<_> = texts.into_iter().filter(|text| !text.is_empty()).collect();
            MessagePart::new("assistant", PartContent::Reasoning(words.join("\n")))
        }
        _ => return None,
    })
}

fn content_parts(role: &str, content: &Value) -> Vec<MessagePart> {
    match content {
        Value::Null => Vec::new(),
        Value::String(text) => vec![MessagePart::new(role, PartContent::Text(text.clone()))],
        Value::Array(blocks) => blocks.iter().map(|block| block_part(role, block)).collect(),
        other => vec![block_part(role, other)],
    }
}

fn block_part(role: &str, block: &Value) -> MessagePart {
    let id = |name: &str| block[name].as_str().map(str::to_owned);
    let text = |names: [&str; 2]| names.into_iter().find_map(|name| block[name].as_str()).map(str::to_owned);
    let content = match (block["type"].as_str(), block.as_str()) {
        (_, Some(text)) => Some(PartContent::Text(text.to_owned())),
        (Some("text" | "input_text" | "output_text" | "refusal"), _) => {
            text(["text", "content"]).or_else(|| text(["refusal", "refusal"])).map(PartContent::Text)
        }
        (Some("thinking" | "reasoning"), _) => {
            text(["thinking", "content"]).or_else(|| text(["text", "text"])).map(PartContent::Reasoning)
        }
        (Some("tool_use" | "tool_call" | "server_tool_use"), _) => {
            let arguments = if block["input"].is_null() { &block["arguments"] } else { &block["input"] };
            return tool_call("assistant", &block["id"], block["name"].as_str().unwrap_or_default(), arguments);
        }
        (Some("tool_result"), _) => {
            let is_error = block["is_error"].as_bool().unwrap_or_default();
            let result =
                PartContent::ToolResult { id: id("tool_use_id"), text: content_text(&block["content"]), is_error };
            // The user's message has it, and the user did not write it.
            return MessagePart::new("tool", result);
        }
        (Some("tool_call_response"), _) => {
            let result = [&block["response"], &block["result"]].into_iter().find(|result| !result.is_null());
            let text = content_text(result.unwrap_or(&Value::Null));
            return MessagePart::new("tool", PartContent::ToolResult { id: id("id"), text, is_error: false });
        }
        _ => None,
    };
    MessagePart::new(role, content.unwrap_or_else(|| PartContent::Other(block.clone())))
}

fn tool_call(role: &str, id: &Value, name: &str, arguments: &Value) -> MessagePart {
    let id = id.as_str().map(str::to_owned);
    MessagePart::new(role, PartContent::ToolCall { id, name: name.to_owned(), arguments: parsed(arguments) })
}

/// Returns the arguments that a model wrote as JSON text. A text that is not an object stays a text.
pub fn parsed_arguments(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => value,
        _ if text.trim().is_empty() => Value::Object(serde_json::Map::new()),
        _ => Value::String(text.to_owned()),
    }
}

fn parsed(arguments: &Value) -> Value {
    match arguments {
        Value::String(text) => parsed_arguments(text),
        Value::Null => Value::Object(serde_json::Map::new()),
        other => other.clone(),
    }
}

/// Returns the text of a content, such as that of a result: its texts in lines, and other values as JSON.
pub fn content_text(content: &Value) -> String {
    match content {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().map(block_text).collect::<Vec<_>>().join("\n"),
        other => block_text(other),
    }
}

fn block_text(block: &Value) -> String {
    let is_image = matches!(block["type"].as_str(), Some("image" | "input_image" | "image_url"));
    match block["text"].as_str().or_else(|| block.as_str()) {
        Some(text) => text.to_owned(),
        // Its data are of no use in a text, and have megabytes.
        None if is_image => "[image]".to_owned(),
        None => block.to_string(),
    }
}

/// Returns the texts of a content that a person or a model wrote: a string, or those of a list of parts.
pub fn written_texts(content: &Value) -> Vec<&str> {
    match content {
        Value::String(text) => vec![text],
        Value::Array(parts) => parts.iter().filter_map(written_text).collect(),
        _ => Vec::new(),
    }
}

fn written_text(part: &Value) -> Option<&str> {
    match part["type"].as_str() {
        Some("text" | "output_text" | "input_text") => part["text"].as_str(),
        Some(_) => None,
        // Some servers send lists of plain strings.
        None => part.as_str().or_else(|| part["text"].as_str()),
    }
}

/// Returns the parts of an answer: what the model wrote for itself, its text, and the calls that it asks for.
pub fn response_parts(response: &LlmResponse) -> Vec<MessagePart> {
    let mut parts = reasoning(&response.body);
    let text = response.content.as_ref().filter(|text| !text.is_empty());
    parts.extend(text.map(|text| MessagePart::new("assistant", PartContent::Text(text.clone()))));
    parts.extend(response.tool_calls.iter().map(|call| {
        let (name, arguments) = (call.function.name.clone(), parsed_arguments(&call.function.arguments));
        MessagePart::new("assistant", PartContent::ToolCall { id: call.id.clone(), name, arguments })
    }));
    parts
}

fn reasoning(body: &Value) -> Vec<MessagePart> {
    let message = &body["choices"][0]["message"];
    let items = if message.is_object() { std::slice::from_ref(message) } else { &[] };
    let items = items.iter().chain(body["output"].as_array().into_iter().flatten());
    let blocks = content_parts("assistant", &body["content"]);
    let parts = items.flat_map(message_parts).chain(blocks);
    let is_shown = |part: &MessagePart| matches!(&part.content, PartContent::Reasoning(words) if !words.is_empty());
    parts.filter(is_shown).collect()
}

/// The histories of a session. Each agent has its own.
#[derive(Debug, Default)]
pub struct Conversation<'a> {
    threads: HashMap<Option<&'a str>, Thread<'a>>,
}

#[derive(Debug, Default)]
struct Thread<'a> {
    /// The messages of the last history, to skip what the next one repeats.
    last: &'a [Value],
    /// How often a part is in the current history, and how often it was returned.
    counts: HashMap<Sha256Digest, (usize, usize)>,
}

impl<'a> Conversation<'a> {
    /// Returns the parts of a request that were not returned yet.
    pub fn request(&mut self, agent: Option<&'a str>, request: &'a LlmRequest) -> Vec<MessagePart> {
        let thread = self.threads.entry(agent).or_default();
        let mut parts = thread.only_once(instruction_parts(request));
        parts.extend(thread.history(&request.messages));
        parts
    }

    /// Returns the parts of a list of messages that were not returned yet, such as that of a checkpoint.
    pub fn history(&mut self, agent: Option<&'a str>, messages: &[Value]) -> Vec<MessagePart> {
        let thread = self.threads.entry(agent).or_default();
        thread.only_once(messages.iter().flat_map(message_parts).collect())
    }

    /// Returns the parts of an answer. They are not returned again when a later request repeats them.
    pub fn response(&mut self, agent: Option<&'a str>, response: &LlmResponse) -> Vec<MessagePart> {
        let parts = response_parts(response);
        let thread = self.threads.entry(agent).or_default();
        for part in &parts {
            thread.counts.entry(part.key()).or_default().1 += 1;
        }
        parts
    }
}

impl<'a> Thread<'a> {
    fn history(&mut self, messages: &'a Value) -> Vec<MessagePart> {
        let Value::Array(messages) = messages else { return self.only_once(history_parts(messages)) };
        // Most requests continue the last one: comparing its messages is cheaper than to digest them again.
        let is_continued = messages.len() >= self.last.len() && messages[..self.last.len()] == *self.last;
        let skipped = if is_continued { self.last.len() } else { 0 };
        if !is_continued {
            self.counts.values_mut().for_each(|(current, _)| *current = 0);
        }
        self.last = messages;
        messages[skipped..].iter().flat_map(message_parts).filter(|part| self.count(part)).collect()
    }

    /// Counts a part of the current history. Returns whether it occurs more often than it was returned.
    fn count(&mut self, part: &MessagePart) -> bool {
        let (current, returned) = self.counts.entry(part.key()).or_default();
        *current += 1;
        let is_new = *current > *returned;
        *returned = (*returned).max(*current);
        is_new
    }

    fn only_once(&mut self, parts: Vec<MessagePart>) -> Vec<MessagePart> {
        let is_new = |part: &MessagePart| {
            let returned = &mut self.counts.entry(part.key()).or_default().1;
            let is_new = *returned == 0;
            *returned = (*returned).max(1);
            is_new
        };
        parts.into_iter().filter(is_new).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::event::RequestedCall;

    fn request(messages: Value) -> LlmRequest {
        LlmRequest { messages, ..LlmRequest::default() }
    }

    fn texts(parts: &[MessagePart]) -> Vec<String> {
        let text = |part: &MessagePart| match &part.content {
            PartContent::Text(text) => format!("{}: {text}", part.role),
            PartContent::Reasoning(text) => format!("reasoning: {text}"),
            PartContent::ToolCall { name, arguments, .. } => format!("call: {name} {arguments}"),
            PartContent::ToolResult { text, is_error, .. } => format!("result: {text} {is_error}"),
            PartContent::Other(value) => format!("other: {value}"),
        };
        parts.iter().map(text).collect()
    }

    #[test]
    fn the_three_protocols_have_one_form() {
        let chat = json!([
            {"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "u"}]},
            {"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{\"a\":1}"}}]},
            {"role": "tool", "tool_call_id": "c", "content": "out"},
        ]);
        let anthropic = json!([
            {"role": "system", "content": "s"}, {"role": "user", "content": "u"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "ls", "input": {"a": 1}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "out"}]}]},
        ]);
        let responses = json!([
            {"role": "system", "content": "s"}, {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "u"}]},
            {"type": "function_call", "call_id": "c", "name": "ls", "arguments": "{\"a\":1}"},
            {"type": "function_call_output", "call_id": "c", "output": "out"},
        ]);
        let expected = ["system: s", "user: u", "call: ls {\"a\":1}", "result: out false"];
        for messages in [chat, anthropic, responses] {
            assert_eq!(texts(&history_parts(&messages)), expected, "{messages}");
        }
    }

    #[test]
    fn each_message_is_returned_once() {
        let user = |text: &str| json!({"role": "user", "content": text});
        let assistant = json!({"role": "assistant", "content": "hello"});
        let requests = [
            request(json!([user("hi")])),
            request(json!([user("hi"), assistant, user("go on")])),
            // The same words again are another message.
            request(json!([user("hi"), assistant, user("go on"), user("go on")])),
            // A compaction replaces the history.
            request(json!([user("summary"), user("go on")])),
        ];
        let answer = LlmResponse { content: Some("hello".to_owned()), ..LlmResponse::default() };
        let mut conversation = Conversation::default();
        assert_eq!(texts(&conversation.request(None, &requests[0])), ["user: hi"]);
        assert_eq!(texts(&conversation.response(None, &answer)), ["assistant: hello"]);
        assert_eq!(texts(&conversation.request(None, &requests[1])), ["user: go on"]);
        assert_eq!(texts(&conversation.request(None, &requests[2])), ["user: go on"]);
        assert_eq!(texts(&conversation.request(None, &requests[3])), ["user: summary"]);
        assert_eq!(texts(&conversation.request(Some("sub"), &requests[0])), ["user: hi"]);
    }

    #[test]
    fn a_call_of_an_answer_is_not_returned_again() {
        let response = LlmResponse {
            tool_calls: vec![RequestedCall::new(Some("c".to_owned()), "ls".to_owned(), "{oops".to_owned())],
            ..LlmResponse::default()
        };
        let next = request(
            json!([{"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "ls", "arguments": "{oops"}}]}]),
        );
        let mut conversation = Conversation::default();
        assert_eq!(texts(&conversation.response(None, &response)), ["call: ls \"{oops\""]);
        assert!(conversation.request(None, &next).is_empty());
    }

    #[test]
    fn unknown_messages_are_kept() {
        for (message, expected) in [
            (json!([{"type": "image", "data": "x"}]), "other: {\"type\":\"image\",\"data\":\"x\"}"),
            (json!([7]), "other: 7"),
            (json!("text"), "user: text"),
        ] {
            assert_eq!(texts(&history_parts(&message)), [expected]);
        }
    }
}
