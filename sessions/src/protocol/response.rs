//! Whole answers, and the one form that those of all protocols are brought into.

use serde_json::Value;

use crate::event::{Api, LlmResponse, RequestedCall, Usage};
use crate::message::written_texts;

/// A longer text of an error is cut.
const MAX_ERROR_CHARS: usize = 500;

/// Returns the response that the body of an answer has without streaming.
pub fn response_from_body(api: Api, body: Value) -> LlmResponse {
    let (content, tool_calls, finish_reason) = match api {
        Api::OpenaiChat => {
            // Further choices are in `body` only: agents ask for one.
            let choice = &body["choices"][0];
            let message = &choice["message"];
            (joined_text(&message["content"]), calls_of(api, message), text(&choice["finish_reason"]))
        }
        Api::AnthropicMessages => (joined_text(&body["content"]), calls_of(api, &body), text(&body["stop_reason"])),
        Api::OpenaiResponses => {
            let output = body["output"].as_array().map(Vec::as_slice).unwrap_or_default();
            let messages = output.iter().filter(|item| item["type"] == "message");
            let content: String = messages.filter_map(|item| joined_text(&item["content"])).collect();
            let calls = output.iter().flat_map(|item| calls_of(api, item)).collect();
            ((!content.is_empty()).then_some(content), calls, text(&body["status"]))
        }
    };
    let (usage, model) = (usage_of(api, &body["usage"]), text(&body["model"]));
    LlmResponse { content, tool_calls, usage, finish_reason, model, body }
}

/// Returns the tool calls that a message asks for. For the Responses API, a message is an item of `input` or `output`.
pub(super) fn calls_of(api: Api, message: &Value) -> Vec<RequestedCall> {
    match api {
        Api::OpenaiChat => {
            let calls = message["tool_calls"].as_array().into_iter().flatten().filter_map(chat_call);
            // The older form, which has no id.
            let function = &message["function_call"];
            let older = text(&function["name"])
                .map(|name| RequestedCall::new(None, name, text(&function["arguments"]).unwrap_or_default()));
            calls.chain(older).collect()
        }
        Api::AnthropicMessages => {
            let blocks = message["content"].as_array().into_iter().flatten();
            let calls = blocks.filter(|block| block["type"] == "tool_use").filter_map(|block| {
                Some(RequestedCall::new(text(&block["id"]), text(&block["name"])?, json_text(&block["input"])))
            });
            calls.collect()
        }
        Api::OpenaiResponses => item_call(message).into_iter().collect(),
    }
}

fn chat_call(call: &Value) -> Option<RequestedCall> {
    let id = text(&call["id"]);
    if let Some(custom) = call.get("custom") {
        return Some(RequestedCall::new(id, text(&custom["name"])?, text(&custom["input"]).unwrap_or_default()));
    }
    let function = call.get("function")?;
    let name = text(&function["name"]).unwrap_or_default();
    Some(RequestedCall::new(id, name, json_text(&function["arguments"])))
}

/// Calls that the server runs itself, such as `web_search_call`, have no `call_id`.
fn item_call(item: &Value) -> Option<RequestedCall> {
    let (kind, id) = (item["type"].as_str()?, text(&item["call_id"])?);
    if !kind.ends_with("_call") {
        return None;
    }
    let name = text(&item["name"]).unwrap_or_else(|| kind.to_owned());
    let arguments = ["arguments", "input", "action", "operation"].iter().find_map(|field| item.get(field));
    Some(RequestedCall::new(Some(id), name, arguments.map(json_text).unwrap_or_default()))
}

/// A larger number is not a count of tokens. The sums of a session with millions of calls stay within 64 bits.
const MAX_TOKENS: u64 = 100_000_000_000;

/// Returns a count of tokens.
pub fn token_count(value: &Value) -> Option<u64> {
    value.as_u64().filter(|count| *count <= MAX_TOKENS)
}

/// Returns the numbers of a `usage` object, or none if it has none.
pub fn usage_of(api: Api, usage: &Value) -> Option<Usage> {
    let number = |name: &str| token_count(&usage[name]);
    let (prompt, completion, cached) = match api {
        Api::OpenaiChat => {
            let cached = token_count(&usage["prompt_tokens_details"]["cached_tokens"]);
            (number("prompt_tokens"), number("completion_tokens"), cached)
        }
        Api::OpenaiResponses => {
            let cached = token_count(&usage["input_tokens_details"]["cached_tokens"]);
            (number("input_tokens"), number("output_tokens"), cached)
        }
        Api::AnthropicMessages => {
            // `input_tokens` counts only those that were neither read from the cache nor written to it.
            let read = number("cache_read_input_tokens");
            let parts = [number("input_tokens"), number("cache_creation_input_tokens"), read];
            let prompt = parts.into_iter().flatten().reduce(u64::saturating_add);
            (prompt, number("output_tokens"), read)
        }
    };
    (prompt.is_some() || completion.is_some()).then(|| Usage::new(prompt, completion, cached))
}

/// Returns the message of an answer with an error status.
pub fn error_message(body: &[u8]) -> Option<String> {
    let parsed: Option<Value> = serde_json::from_slice(body).ok();
    let stated = parsed.as_ref().and_then(stated_error);
    let message = stated.unwrap_or_else(|| String::from_utf8_lossy(body).trim().to_owned());
    (!message.is_empty()).then(|| shortened(message))
}

/// Returns the message of an object that has an error.
pub(super) fn stated_error(value: &Value) -> Option<String> {
    let error = &value["error"];
    let places = [&error["message"], error, &value["message"], &value["detail"]];
    let message = places.into_iter().find_map(text)?;
    Some(match text(&error["type"]) {
        Some(kind) => format!("{kind}: {message}"),
        None => message,
    })
}

pub(super) fn shortened(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(MAX_ERROR_CHARS) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Returns the text that a model wrote; `None` if it is empty.
pub fn joined_text(content: &Value) -> Option<String> {
    Some(written_texts(content).concat()).filter(|text| !text.is_empty())
}

pub(super) fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// Returns a string itself, and any other value as JSON.
fn json_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(id: &str, name: &str, arguments: &str) -> RequestedCall {
        RequestedCall::new(Some(id.to_owned()), name.to_owned(), arguments.to_owned())
    }

    #[test]
    fn a_chat_completion_is_read() {
        let body = json!({"model": "m-1", "choices": [{"message": {"content": "Hi", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{\"p\":1}"}},
            {"id": "b", "type": "custom", "custom": {"name": "patch", "input": "*** x"}}]}, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}});
        let response = response_from_body(Api::OpenaiChat, body.clone());
        assert_eq!(response.content.as_deref(), Some("Hi"));
        assert_eq!(response.tool_calls, [call("a", "read", "{\"p\":1}"), call("b", "patch", "*** x")]);
        assert_eq!(response.usage, Some(Usage::new(Some(9), Some(2), Some(4))));
        assert_eq!(response.finish_reason.as_deref(), Some("tool_calls"));
        assert_eq!((response.model.as_deref(), response.body), (Some("m-1"), body));
    }

    #[test]
    fn an_anthropic_message_is_read() {
        let body = json!({"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"},
            {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}},
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, {"type": "text", "text": "b"}],
            "stop_reason": "tool_use", "usage": {"input_tokens": 3, "cache_creation_input_tokens": 10,
            "cache_read_input_tokens": 100, "output_tokens": 5}});
        let response = response_from_body(Api::AnthropicMessages, body);
        assert_eq!(response.content.as_deref(), Some("ab"));
        assert_eq!(response.tool_calls, [call("t", "Bash", "{\"command\":\"ls\"}")]);
        assert_eq!(response.usage, Some(Usage::new(Some(113), Some(5), Some(100))));
        assert_eq!(response.usage.unwrap().total_tokens, Some(118));
    }

    #[test]
    fn an_answer_of_the_responses_api_is_read() {
        let body = json!({"status": "completed", "output": [{"type": "reasoning", "summary": []},
            {"type": "message", "content": [{"type": "output_text", "text": "a"}, {"type": "refusal", "refusal": "n"}]},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "local_shell_call", "call_id": "l", "action": {"type": "exec", "command": ["ls"]}},
            {"type": "web_search_call", "id": "w"}],
            "usage": {"input_tokens": 3, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 2}}});
        let response = response_from_body(Api::OpenaiResponses, body);
        assert_eq!(response.content.as_deref(), Some("a"));
        let shell = call("l", "local_shell_call", "{\"type\":\"exec\",\"command\":[\"ls\"]}");
        assert_eq!(response.tool_calls, [call("c", "f", "{}"), shell]);
        assert_eq!(response.usage, Some(Usage::new(Some(3), Some(5), Some(2))));
        assert_eq!(response.finish_reason.as_deref(), Some("completed"));
    }

    #[test]
    fn a_number_that_no_call_reaches_is_not_a_count() {
        let usage = |input: u64| {
            let usage = json!({"input_tokens": input, "cache_read_input_tokens": 5, "output_tokens": 2});
            usage_of(Api::AnthropicMessages, &usage)
        };
        assert_eq!(usage(MAX_TOKENS), Some(Usage::new(Some(MAX_TOKENS + 5), Some(2), Some(5))));
        for input in [MAX_TOKENS + 1, u64::MAX >> 1, u64::MAX] {
            assert_eq!(usage(input), Some(Usage::new(Some(5), Some(2), Some(5))), "{input}");
        }
    }

    #[test]
    fn what_was_not_sent_is_none() {
        for api in [Api::OpenaiChat, Api::OpenaiResponses, Api::AnthropicMessages] {
            for body in
                [json!({}), json!([]), json!("x"), Value::Null, json!({"usage": {}, "content": [], "output": [1]})]
            {
                let response = response_from_body(api, body.clone());
                assert_eq!(response, LlmResponse { body, ..LlmResponse::default() }, "{api:?}");
            }
        }
    }

    #[test]
    fn the_message_of_an_error_is_found_in_all_forms() {
        for (body, expected) in [
            (r#"{"error":{"message":"slow down","type":"rate_limit"}}"#, Some("rate_limit: slow down")),
            (
                r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#,
                Some("overloaded_error: busy"),
            ),
            (r#"{"error":"bad"}"#, Some("bad")),
            (r#"{"detail":"no"}"#, Some("no")),
            ("<html>502</html>\n", Some("<html>502</html>")),
            ("", None),
        ] {
            assert_eq!(error_message(body.as_bytes()).as_deref(), expected, "{body}");
        }
        assert_eq!(error_message("é".repeat(2000).as_bytes()).unwrap().chars().count(), 501);
    }
}
