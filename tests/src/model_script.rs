//! Answers of a model server, chosen by the model that a request names, in all protocols.
//!
//! | model | answer |
//! |---|---|
//! | `text` | a text with characters of several bytes |
//! | `tools` | a text and two tool calls; a text once a tool has answered |
//! | `no-usage` | a text without the count of tokens |
//! | `gzip`, `br`, `zstd` | a compressed text |
//! | `huge` | a text of 640 KiB |
//! | `cut` | breaks off after two thirds |
//! | `closing` | a text, and the end of the connection instead of a length |
//! | `busy` | 429, and a text from the second request on |
//! | `failing` | 400 |

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::model_server::{ModelAnswer, ModelRequest, Step};

const TEXT: &str = "Grüße aus Zürich 😀, line\nbreak";

/// Sizes of the pieces of streams: within characters, lines and line ends.
const PIECE_SIZES: [usize; 6] = [1, 7, 64, 3, 200, 13];

/// Returns the answer to a request. `earlier` is the number of equal requests before it.
pub fn scripted_answer(request: &ModelRequest, earlier: usize) -> ModelAnswer {
    let path = request.target.split('?').next().unwrap_or_default();
    let protocol = if path.ends_with("/chat/completions") {
        Protocol::Chat
    } else if path.ends_with("/responses") {
        Protocol::Responses
    } else if path.ends_with("/messages") {
        Protocol::Messages
    } else if path.ends_with("/count_tokens") {
        return ModelAnswer::json(200, &json!({"input_tokens": 7}));
    } else {
        return ModelAnswer::json(200, &json!({"object": "list", "data": [{"id": "text", "object": "model"}]}));
    };
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let model = body["model"].as_str().unwrap_or_default();
    match model {
        "failing" => return error(400, "invalid_request_error", "no such tool"),
        "busy" if earlier == 0 => {
            return error(429, "rate_limit_error", "slow down").header("retry-after-ms", "1");
        }
        _ => {}
    }
    let history = [&body["messages"], &body["input"]].map(Value::to_string).concat();
    let has_result = ["\"tool\"", "tool_result", "function_call_output"].iter().any(|it| history.contains(it));
    let answer = Answer {
        protocol,
        model,
        text: if model == "huge" { "häh ".repeat(1 << 17) } else { TEXT.to_owned() },
        has_tools: model == "tools" && !has_result,
        has_usage: model != "no-usage",
    };
    let is_stream = body["stream"] == true;
    let (content_type, bytes) = if is_stream {
        let with_usage = protocol != Protocol::Chat || body["stream_options"]["include_usage"] == true;
        let events = answer.events(with_usage);
        ("text/event-stream; charset=utf-8", events.into_bytes())
    } else {
        ("application/json", answer.whole().to_string().into_bytes())
    };
    let answer = ModelAnswer::new(200, content_type, "").header("X-Request-Id", "req_1");
    match model {
        "gzip" => answer.header("Content-Encoding", "gzip").chunked(pieces(&gzip(&bytes))),
        "br" => answer.header("Content-Encoding", "br").chunked(pieces(&brotli_pieces(&[&bytes]).concat())),
        "zstd" => answer.header("Content-Encoding", "zstd").chunked(pieces(&zstd_pieces(&[&bytes]).concat())),
        "cut" => answer.chunked(pieces(&bytes[..bytes.len() * 2 / 3])).cut_after(usize::MAX),
        "closing" => answer.chunked(pieces(&bytes)).closing(),
        "huge" => answer.chunked(bytes.chunks(100_001).map(|piece| Step::Send(piece.to_vec()))),
        _ if is_stream => answer.chunked(pieces(&bytes)),
        _ => ModelAnswer::new(200, content_type, bytes).header("X-Request-Id", "req_1"),
    }
}

fn error(status: u16, kind: &str, message: &str) -> ModelAnswer {
    ModelAnswer::json(status, &json!({"type": "error", "error": {"type": kind, "message": message}}))
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

/// Encodes texts of 1 byte to 64 KiB as blocks of brotli that are stored as they are (RFC 7932, section 9). The last piece ends
/// the stream.
pub fn brotli_pieces(texts: &[&[u8]]) -> Vec<Vec<u8>> {
    let blocks = texts.iter().enumerate().map(|(number, text)| {
        // The first header follows the bit of the window.
        let (header, shift) = (1 << 19 | (u32::try_from(text.len()).unwrap() - 1) << 3, u32::from(number == 0));
        [&(header << shift).to_le_bytes()[..3], text].concat()
    });
    blocks.chain([vec![3]]).collect()
}

/// Encodes texts of up to 128 KiB as blocks of zstd that are stored as they are (RFC 8878, section 3.1.1). The last piece ends
/// the frame.
pub fn zstd_pieces(texts: &[&[u8]]) -> Vec<Vec<u8>> {
    let blocks = texts.iter().enumerate().map(|(number, text)| {
        let start: &[u8] = if number == 0 { b"\x28\xb5\x2f\xfd\0\x58" } else { b"" };
        [start, &(u32::try_from(text.len()).unwrap() << 3).to_le_bytes()[..3], text].concat()
    });
    blocks.chain([vec![1, 0, 0]]).collect()
}

fn pieces(bytes: &[u8]) -> Vec<Step> {
    let (mut rest, mut pieces) = (bytes, Vec::new());
    for size in PIECE_SIZES.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at(rest.len().min(*size));
        pieces.push(Step::Send(piece.to_vec()));
        rest = after;
    }
    pieces
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Chat,
    Responses,
    Messages,
}

struct Answer<'a> {
    protocol: Protocol,
    model: &'a str,
    text: String,
    has_tools: bool,
    has_usage: bool,
}

const CALLS: [(&str, &str, &str); 2] =
    [("call_a", "shell", r#"{"command": "echo ü"}"#), ("call_b", "read_file", r#"{"path": "src/a.rs"}"#)];

impl Answer<'_> {
    fn finish_reason(&self) -> &'static str {
        match (self.protocol, self.has_tools) {
            (Protocol::Chat, true) => "tool_calls",
            (Protocol::Chat, false) => "stop",
            (Protocol::Messages, true) => "tool_use",
            (Protocol::Messages, false) => "end_turn",
            (Protocol::Responses, _) => "completed",
        }
    }

    fn usage(&self) -> Value {
        match self.protocol {
            Protocol::Chat => json!({"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25,
                "prompt_tokens_details": {"cached_tokens": 8}}),
            Protocol::Responses => json!({"input_tokens": 20, "output_tokens": 5, "total_tokens": 25,
                "input_tokens_details": {"cached_tokens": 8}, "output_tokens_details": {"reasoning_tokens": 0}}),
            Protocol::Messages => json!({"input_tokens": 2, "cache_creation_input_tokens": 10,
                "cache_read_input_tokens": 8, "output_tokens": 5}),
        }
    }

    fn whole(&self) -> Value {
        let mut whole = match self.protocol {
            Protocol::Chat => {
                let mut message = json!({"role": "assistant", "content": self.text, "refusal": null});
                if self.has_tools {
                    let calls = CALLS.iter().map(|(id, name, arguments)| {
                        json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
                    });
                    message["tool_calls"] = calls.collect();
                }
                json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": self.model, "choices": [
                    {"index": 0, "message": message, "logprobs": null, "finish_reason": self.finish_reason()}]})
            }
            Protocol::Messages => json!({"id": "msg_1", "type": "message", "role": "assistant", "model": self.model,
                "content": self.blocks(), "stop_reason": self.finish_reason(), "stop_sequence": null}),
            Protocol::Responses => self.response("completed", &self.items()),
        };
        if self.has_usage {
            whole["usage"] = self.usage();
        } else if self.protocol == Protocol::Messages {
            whole["usage"] = json!({});
        }
        whole
    }

    fn response(&self, status: &str, output: &[Value]) -> Value {
        json!({"id": "resp_1", "object": "response", "created_at": 1, "status": status, "model": self.model,
            "output": output, "parallel_tool_calls": true, "tool_choice": "auto", "tools": []})
    }

    fn blocks(&self) -> Vec<Value> {
        let mut blocks = vec![json!({"type": "text", "text": self.text})];
        if self.has_tools {
            blocks.extend(CALLS.iter().map(|(id, name, arguments)| {
                let input: Value = serde_json::from_str(arguments).expect("JSON");
                json!({"type": "tool_use", "id": id, "name": name, "input": input})
            }));
        }
        blocks
    }

    fn items(&self) -> Vec<Value> {
        let content = json!([{"type": "output_text", "text": self.text, "annotations": []}]);
        let mut items = vec![
            json!({"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": content}),
        ];
        if self.has_tools {
            items.extend(CALLS.iter().map(|(id, name, arguments)| {
                json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name,
                    "arguments": arguments, "status": "completed"})
            }));
        }
        items
    }

    fn events(&self, with_usage: bool) -> String {
        let events = match self.protocol {
            Protocol::Chat => self.chat_events(with_usage),
            Protocol::Messages => self.message_events(),
            Protocol::Responses => self.response_events(),
        };
        // Two line ends and a comment, as several servers mix them.
        let mut text = vec![": stream\n\n".to_owned()];
        text.extend(events.iter().map(|event| match event["type"].as_str() {
            Some(kind) => format!("event: {kind}\r\ndata: {event}\r\n\r\n"),
            None => format!("data: {event}\n\n"),
        }));
        if self.protocol == Protocol::Chat {
            text.push("data: [DONE]\n\n".to_owned());
        }
        text.concat()
    }

    fn chat_events(&self, with_usage: bool) -> Vec<Value> {
        let chunk = |choices: Value| json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": self.model, "choices": choices});
        let delta = |delta: Value| chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]));
        let mut events = vec![delta(json!({"role": "assistant", "content": ""}))];
        events.extend(halves(&self.text).map(|text| delta(json!({"content": text}))));
        if self.has_tools {
            for (index, (id, name, _)) in CALLS.iter().enumerate() {
                let function = json!({"name": name, "arguments": ""});
                events.push(delta(
                    json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]}),
                ));
            }
            // The arguments of both come in turns.
            for half in 0..2 {
                let parts = CALLS.iter().enumerate().filter_map(|(index, (.., arguments))| {
                    let arguments = halves(arguments).nth(half)?;
                    Some(json!({"index": index, "function": {"arguments": arguments}}))
                });
                events.push(delta(json!({"tool_calls": parts.collect::<Vec<_>>()})));
            }
        }
        events.push(chunk(json!([{"index": 0, "delta": {}, "finish_reason": self.finish_reason()}])));
        if with_usage && self.has_usage {
            let mut last = chunk(json!([]));
            last["usage"] = self.usage();
            events.push(last);
        }
        events
    }

    fn message_events(&self) -> Vec<Value> {
        let mut start = self.whole();
        (start["content"], start["stop_reason"]) = (json!([]), Value::Null);
        if self.has_usage {
            start["usage"]["output_tokens"] = json!(1);
        }
        let mut events = vec![json!({"type": "message_start", "message": start}), json!({"type": "ping"})];
        for (index, mut block) in self.blocks().into_iter().enumerate() {
            let is_text = block["type"] == "text";
            let whole = if is_text { self.text.clone() } else { block["input"].to_string() };
            block[if is_text { "text" } else { "input" }] = if is_text { json!("") } else { json!({}) };
            events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
            events.extend(halves(&whole).map(|part| {
                let delta = if is_text {
                    json!({"type": "text_delta", "text": part})
                } else {
                    json!({"type": "input_json_delta", "partial_json": part})
                };
                json!({"type": "content_block_delta", "index": index, "delta": delta})
            }));
            events.push(json!({"type": "content_block_stop", "index": index}));
        }
        let usage = if self.has_usage { json!({"output_tokens": 5}) } else { json!({}) };
        let delta = json!({"stop_reason": self.finish_reason(), "stop_sequence": null});
        events.push(json!({"type": "message_delta", "delta": delta, "usage": usage}));
        events.push(json!({"type": "message_stop"}));
        events
    }

    fn response_events(&self) -> Vec<Value> {
        let mut events = vec![json!({"type": "response.created", "response": self.response("in_progress", &[])})];
        for (index, item) in self.items().into_iter().enumerate() {
            let (is_text, id) = (item["type"] == "message", item["id"].clone());
            let mut start = item.clone();
            start["status"] = json!("in_progress");
            start[if is_text { "content" } else { "arguments" }] = if is_text { json!([]) } else { json!("") };
            events.push(json!({"type": "response.output_item.added", "output_index": index, "item": start}));
            if is_text {
                let part = json!({"type": "output_text", "text": "", "annotations": []});
                events.push(json!({"type": "response.content_part.added", "item_id": id, "output_index": index,
                    "content_index": 0, "part": part}));
                events.extend(halves(&self.text).map(|part| {
                    json!({"type": "response.output_text.delta", "item_id": id, "output_index": index,
                        "content_index": 0, "delta": part})
                }));
            } else {
                let arguments = item["arguments"].as_str().unwrap_or_default();
                events.extend(halves(arguments).map(|part| {
                    json!({"type": "response.function_call_arguments.delta", "item_id": id, "output_index": index,
                        "delta": part})
                }));
            }
            events.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
        }
        events.push(json!({"type": "response.completed", "response": self.whole()}));
        for (number, event) in events.iter_mut().enumerate() {
            event["sequence_number"] = json!(number);
        }
        events
    }
}

/// Returns both halves of a text.
fn halves(text: &str) -> impl Iterator<Item = &str> {
    let middle = (text.len() / 2..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let (left, right) = text.split_at(middle);
    [left, right].into_iter()
}
