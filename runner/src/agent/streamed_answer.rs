//! Streamed answers: the events of a protocol add up to the document that it answers with when it does not stream.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::stream::StreamFormat;

/// Returns the document that a body is, or that its events add up to.
pub(super) fn document(body: &[u8], add_up: fn(Vec<Value>) -> Value) -> Cow<'_, [u8]> {
    // A server may ignore that a stream was asked for, and errors are never streamed.
    if body.trim_ascii_start().first().is_none_or(|byte| *byte == b'{' || *byte == b'[') {
        return Cow::Borrowed(body);
    }
    match StreamFormat::Sse.parse(body) {
        Ok(Value::Array(events)) if events.iter().any(Value::is_object) => {
            Cow::Owned(add_up(events).to_string().into_bytes())
        }
        // A body of another kind is reported as it is.
        _ => Cow::Borrowed(body),
    }
}

/// Adds up the chunks of a chat completion.
pub(super) fn chat(events: Vec<Value>) -> Value {
    let (mut answer, mut message, mut calls) = (Map::new(), Map::new(), Vec::<Value>::new());
    let mut finish_reason = Value::Null;
    for event in events {
        if !event["error"].is_null() {
            return event;
        }
        for field in ["id", "model", "created", "service_tier", "system_fingerprint", "usage"] {
            // The last value counts: the usage is null until the last chunk.
            if !event[field].is_null() {
                answer.insert(field.to_owned(), event[field].clone());
            }
        }
        let choice = &event["choices"][0];
        if !choice["finish_reason"].is_null() {
            finish_reason = choice["finish_reason"].clone();
        }
        for field in ["content", "refusal"] {
            append(message.entry(field).or_insert(Value::Null), &choice["delta"][field]);
        }
        for delta in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
            add_call(&mut calls, delta);
        }
    }
    message.insert("role".to_owned(), "assistant".into());
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), calls.into());
    }
    answer.insert("choices".to_owned(), json!([{"index": 0, "message": message, "finish_reason": finish_reason}]));
    answer.into()
}

/// Adds a part of a tool call to the calls so far.
fn add_call(calls: &mut Vec<Value>, delta: &Value) {
    let last = calls.len().saturating_sub(1);
    // Some servers leave the index out, and send each call with its id in one piece.
    let index = delta["index"].as_u64().and_then(|index| usize::try_from(index).ok());
    let index = index.unwrap_or(if delta["id"].is_string() { calls.len() } else { last });
    // A server cannot make the list long with a single large index.
    let index = index.min(calls.len());
    if index == calls.len() {
        calls.push(json!({"type": "function"}));
    }
    let call = &mut calls[index];
    for field in ["id", "type"] {
        if delta[field].is_string() {
            call[field] = delta[field].clone();
        }
    }
    for (kind, texts) in [("function", ["name", "arguments"]), ("custom", ["name", "input"])] {
        for text in texts.into_iter().filter(|text| delta[kind][*text].is_string()) {
            append(&mut call[kind][text], &delta[kind][text]);
        }
    }
}

/// Returns the response of the last event of a stream of the Responses API.
pub(super) fn responses(events: Vec<Value>) -> Value {
    let mut last = Value::Null;
    for mut event in events {
        match event["type"].as_str() {
            Some("error") => return json!({"error": event}),
            Some("response.completed" | "response.incomplete" | "response.failed") => last = event["response"].take(),
            _ => {}
        }
    }
    last
}

/// Adds up the events of a message of Anthropic's API.
pub(super) fn anthropic(events: Vec<Value>) -> Value {
    let mut message = Value::Null;
    // With the text of the input of a tool, which is JSON only when it is complete.
    let mut blocks: Vec<(Value, String)> = Vec::new();
    for mut event in events {
        match event["type"].as_str() {
            Some("error") => return event,
            Some("message_start") => message = event["message"].take(),
            Some("content_block_start") => blocks.push((event["content_block"].take(), String::new())),
            Some("content_block_delta") => {
                let Some((block, input)) = blocks.last_mut().filter(|(block, _)| block.is_object()) else { continue };
                let delta = &event["delta"];
                input.push_str(delta["partial_json"].as_str().unwrap_or_default());
                for field in ["text", "thinking", "signature"] {
                    if delta[field].is_string() {
                        append(&mut block[field], &delta[field]);
                    }
                }
            }
            Some("message_delta") if message.is_object() => {
                for (field, value) in event["delta"].as_object().into_iter().flatten() {
                    message[field] = value.clone();
                }
                if let (Value::Object(usage), Value::Object(more)) = (&mut message["usage"], event["usage"].take()) {
                    usage.extend(more);
                }
            }
            _ => {}
        }
    }
    let finished = blocks.into_iter().map(|(mut block, input)| {
        if !input.is_empty() && block.is_object() {
            block["input"] = serde_json::from_str(&input).unwrap_or_else(|_| input.into());
        }
        block
    });
    let content: Vec<_> = finished.collect();
    if message.is_object() {
        message["content"] = content.into();
    }
    message
}

/// Appends a text to a text or to null.
fn append(text: &mut Value, more: &Value) {
    if let Some(more) = more.as_str() {
        *text = format!("{}{more}", text.as_str().unwrap_or_default()).into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(events: &[Value], add_up: fn(Vec<Value>) -> Value) -> Value {
        let body = events.iter().map(|event| format!("data: {event}\n\n")).collect::<Vec<_>>().concat();
        serde_json::from_slice(&document((body + "data: [DONE]\n\n").as_bytes(), add_up)).unwrap()
    }

    #[test]
    fn chunks_of_a_chat_completion_add_up() {
        let chunk = |delta: Value| json!({"id": "x", "model": "m", "choices": [{"delta": delta, "finish_reason": null}], "usage": null});
        let call = |index: u64, fields: Value| json!({"tool_calls": [{"index": index, "function": fields}]});
        let answer = read(
            &[
                chunk(json!({"role": "assistant", "content": "He"})),
                chunk(json!({"content": "llo"})),
                chunk(
                    json!({"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}]}),
                ),
                chunk(call(0, json!({"arguments": "{\"n\":"}))),
                chunk(call(0, json!({"arguments": "1}"}))),
                chunk(json!({"tool_calls": [{"index": 1, "id": "b", "function": {"name": "g", "arguments": "{}"}}]})),
                json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}),
                json!({"choices": [], "usage": {"prompt_tokens": 3}}),
            ],
            chat,
        );
        let message = &answer["choices"][0]["message"];
        assert_eq!(message["content"], "Hello");
        assert_eq!(message["tool_calls"][0]["function"], json!({"name": "f", "arguments": "{\"n\":1}"}));
        assert_eq!((&message["tool_calls"][1]["id"], &answer["usage"]["prompt_tokens"]), (&json!("b"), &json!(3)));
        assert_eq!(answer["choices"][0]["finish_reason"], "tool_calls");
    }

    #[test]
    fn blocks_of_a_message_add_up() {
        let answer = read(
            &[
                json!({"type": "message_start", "message": {"id": "m", "content": [], "usage": {"input_tokens": 9, "output_tokens": 1}}}),
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}}),
                json!({"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}}}),
                json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{\"n\":"}}),
                json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": " 1}"}}),
                json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}}),
                json!({"type": "message_stop"}),
            ],
            anthropic,
        );
        assert_eq!(answer["content"][0]["text"], "Hi");
        assert_eq!(answer["content"][1]["input"], json!({"n": 1}));
        assert_eq!((&answer["stop_reason"], &answer["usage"]["output_tokens"]), (&json!("tool_use"), &json!(7)));
        assert_eq!(answer["usage"]["input_tokens"], 9);
    }

    #[test]
    fn the_last_event_of_the_responses_api_has_the_response() {
        let response = json!({"status": "completed", "output": []});
        let answer = read(
            &[json!({"type": "response.created"}), json!({"type": "response.completed", "response": response})],
            responses,
        );
        assert_eq!(answer, response);
    }

    #[test]
    fn an_error_in_a_stream_and_a_document_are_as_they_are() {
        let error = json!({"error": {"message": "busy"}});
        assert_eq!(read(&[json!({"choices": []}), error.clone()], chat), error);
        assert_eq!(&*document(b" {\"a\": 1}", chat), b" {\"a\": 1}");
        assert_eq!(&*document(b"<html>", chat), b"<html>");
    }
}
