//! A streamed answer: its events, joined into the answer that the protocol has without streaming.

use serde_json::Value;

use super::anthropic_stream::AnthropicStream;
use super::chat_stream::ChatStream;
use super::event_parser::EventParser;
use super::response::{response_from_body, shortened, stated_error};
use super::responses_stream::ResponsesStream;
use crate::event::{Api, LlmResponse};

/// Where the type of an event is looked for, if the event has not ended.
const TYPE_WITHIN: usize = 256;

/// Joins the events of one answer as they come.
#[derive(Debug)]
pub struct AnswerStream {
    parser: EventParser,
    answer: Answer,
    /// What the last event with an error states.
    error: Option<String>,
    has_events: bool,
    has_ended: bool,
}

#[derive(Debug)]
enum Answer {
    Chat(ChatStream),
    Anthropic(AnthropicStream),
    Responses(ResponsesStream),
}

/// What came of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamedAnswer {
    /// `None` if no event came.
    pub response: Option<LlmResponse>,
    /// True if the answer came to its end.
    pub is_complete: bool,
    /// The error that an event stated.
    pub error: Option<String>,
}

impl AnswerStream {
    pub fn new(api: Api) -> Self {
        let answer = match api {
            Api::OpenaiChat => Answer::Chat(ChatStream::default()),
            Api::AnthropicMessages => Answer::Anthropic(AnthropicStream::default()),
            Api::OpenaiResponses => Answer::Responses(ResponsesStream::default()),
        };
        Self { parser: EventParser::default(), answer, error: None, has_events: false, has_ended: false }
    }

    pub fn push(&mut self, piece: &[u8]) {
        // The parser is taken out, because its events change the rest.
        let mut parser = std::mem::take(&mut self.parser);
        parser.push(piece, |data| self.event(data));
        self.parser = parser;
    }

    /// True if the event that ends the answer has come, or is visible in a part of it.
    pub fn has_ended(&self) -> bool {
        if self.has_ended {
            return true;
        }
        let pending = self.parser.pending_data();
        // A client may act on the line before the event has ended. Only whole JSON ends an answer of the other protocols.
        match self.answer {
            Answer::Chat(_) => pending.trim_ascii() == b"[DONE]",
            Answer::Anthropic(_) | Answer::Responses(_) => {
                let start = &pending[..pending.len().min(TYPE_WITHIN)];
                let is_candidate = pending.ends_with(b"}")
                    && ENDS.iter().any(|end| memchr::memmem::find(start, end.as_bytes()).is_some());
                is_candidate && serde_json::from_slice(pending).is_ok_and(|event: Value| is_end(&event))
            }
        }
    }

    /// Returns what came. `is_cut` states that the connection broke.
    pub fn finish(mut self, is_cut: bool) -> StreamedAnswer {
        let mut parser = std::mem::take(&mut self.parser);
        parser.finish(|data| self.event(data));
        let (api, body, is_finished) = match self.answer {
            Answer::Chat(chat) => {
                let is_finished = chat.is_finished();
                (Api::OpenaiChat, chat.finish(), is_finished)
            }
            Answer::Anthropic(message) => {
                let is_finished = message.is_finished();
                (Api::AnthropicMessages, message.finish(), is_finished)
            }
            Answer::Responses(responses) => (Api::OpenaiResponses, responses.finish(), false),
        };
        // Some servers leave the last event out, and only end the body.
        let is_complete = self.has_ended || (is_finished && !is_cut && self.error.is_none());
        let response = self.has_events.then(|| {
            let mut response = response_from_body(api, body);
            if !is_complete {
                response.finish_reason = None;
            }
            response
        });
        StreamedAnswer { response, is_complete, error: self.error }
    }

    fn event(&mut self, data: &[u8]) {
        if data.trim_ascii() == b"[DONE]" {
            self.has_ended |= matches!(self.answer, Answer::Chat(_));
            return;
        }
        let Ok(event) = serde_json::from_slice::<Value>(data) else { return };
        if !event.is_object() {
            return;
        }
        if let Some(error) = error_of(&event) {
            self.error = Some(shortened(error));
            // An event of the Chat protocol has either an error or choices.
            if event.get("response").is_none() {
                return;
            }
        }
        self.has_events = true;
        self.has_ended |= !matches!(self.answer, Answer::Chat(_)) && is_end(&event);
        match &mut self.answer {
            Answer::Chat(chat) => chat.chunk(event),
            Answer::Anthropic(message) => message.event(event),
            Answer::Responses(response) => response.event(event),
        }
    }
}

/// The types of events that end an answer.
const ENDS: [&str; 4] = ["message_stop", "response.completed", "response.incomplete", "response.failed"];

fn is_end(event: &Value) -> bool {
    event["type"].as_str().is_some_and(|kind| ENDS.contains(&kind))
}

fn error_of(event: &Value) -> Option<String> {
    match event["type"].as_str() {
        Some("error") => stated_error(event),
        Some("response.failed") => stated_error(&event["response"]),
        Some(_) => None,
        None => event.get("error").filter(|error| !error.is_null()).and_then(|_| stated_error(event)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::event::Usage;

    const CHAT: &str = r#"data: {"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}

: keep-alive

data: {"id":"c1","choices":[{"index":0,"delta":{"reasoning_content":"thi"}}]}

data: {"id":"c1","choices":[{"index":0,"delta":{"reasoning_content":"nk","content":"Grüße "}}]}

data: {"id":"c1","choices":[{"index":0,"delta":{"content":"😀"}}]}

data: {"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"read","arguments":""}}]}}]}

data: {"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"shell","arguments":"{\"com"}}]}}]}

data: {"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}},{"index":1,"function":{"arguments":"mand\":\"ls\"}"}}]}}]}

data: {"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":null}

data: {"id":"c1","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12}}

data: [DONE]

"#;

    const ANTHROPIC: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"m1","type":"message","role":"assistant","model":"claude","content":[],"stop_reason":null,"usage":{"input_tokens":3,"cache_read_input_tokens":10,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: ping
data: {"type":"ping"}

data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sig"}}

data: {"type":"content_block_stop","index":0}

data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}

data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Grüße"}}

data: {"type":"content_block_stop","index":1}

data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t1","name":"Bash","input":{}}}

data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}

data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"command\":"}}

data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\"ls\"}"}}

data: {"type":"content_block_stop","index":2}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":20}}

event: message_stop
data: {"type":"message_stop"}

"#;

    const RESPONSES: &str = r#"event: response.created
data: {"type":"response.created","response":{"id":"r1","object":"response","status":"in_progress","model":"m","output":[]}}

data: {"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"i0","role":"assistant","status":"in_progress","content":[]}}

data: {"type":"response.content_part.added","output_index":0,"content_index":0,"part":{"type":"output_text","text":""}}

data: {"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"Grü"}

data: {"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"ße"}

data: {"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"i1","call_id":"c1","name":"shell","arguments":""}}

data: {"type":"response.function_call_arguments.delta","output_index":1,"delta":"{\"cmd\":"}

data: {"type":"response.function_call_arguments.delta","output_index":1,"delta":"\"ls\"}"}

data: {"type":"response.completed","response":{"id":"r1","object":"response","status":"completed","model":"m","output":[{"type":"message","id":"i0","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Grüße"}]},{"type":"function_call","id":"i1","call_id":"c1","name":"shell","arguments":"{\"cmd\":\"ls\"}"}],"usage":{"input_tokens":5,"output_tokens":7}}}

"#;

    const ALL: [(Api, &str); 3] =
        [(Api::OpenaiChat, CHAT), (Api::AnthropicMessages, ANTHROPIC), (Api::OpenaiResponses, RESPONSES)];

    fn read(api: Api, pieces: &[&[u8]], is_cut: bool) -> StreamedAnswer {
        let mut stream = AnswerStream::new(api);
        for piece in pieces {
            stream.push(piece);
        }
        stream.finish(is_cut)
    }

    fn whole(api: Api, text: &str) -> LlmResponse {
        let answer = read(api, &[text.as_bytes()], false);
        assert!(answer.is_complete && answer.error.is_none(), "{answer:?}");
        answer.response.unwrap()
    }

    #[test]
    fn a_streamed_chat_answer_is_that_without_streaming() {
        let response = whole(Api::OpenaiChat, CHAT);
        let expected = json!({"id": "c1", "object": "chat.completion", "model": "m", "choices": [{"index": 0,
            "message": {"role": "assistant", "content": "Grüße 😀", "reasoning_content": "think", "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}},
                {"id": "b", "type": "function", "function": {"name": "shell", "arguments": "{\"command\":\"ls\"}"}}]},
            "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}});
        assert_eq!(response.body, expected);
        assert_eq!(response, response_from_body(Api::OpenaiChat, expected));
        assert_eq!(response.tool_calls.len(), 2);
        assert_eq!(response.usage, Some(Usage::new(Some(5), Some(7), None)));
    }

    #[test]
    fn a_streamed_anthropic_message_is_that_without_streaming() {
        let response = whole(Api::AnthropicMessages, ANTHROPIC);
        let expected = json!({"id": "m1", "type": "message", "role": "assistant", "model": "claude", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "sig"}, {"type": "text", "text": "Grüße"},
            {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}],
            "stop_reason": "tool_use",
            "usage": {"input_tokens": 3, "cache_read_input_tokens": 10, "output_tokens": 20}});
        let mut body = response.body.clone();
        body.as_object_mut().unwrap().shift_remove("stop_sequence");
        assert_eq!(body, expected);
        assert_eq!(response.usage, Some(Usage::new(Some(13), Some(20), Some(10))));
        assert_eq!(response.finish_reason.as_deref(), Some("tool_use"));
    }

    #[test]
    fn a_streamed_answer_of_the_responses_api_is_that_of_its_last_event() {
        let response = whole(Api::OpenaiResponses, RESPONSES);
        assert_eq!(response.content.as_deref(), Some("Grüße"));
        assert_eq!(response.tool_calls[0].function.arguments, "{\"cmd\":\"ls\"}");
        assert_eq!(response.finish_reason.as_deref(), Some("completed"));
        assert_eq!(response.body["output"][0]["status"], "completed");
    }

    #[test]
    fn the_output_of_a_last_event_without_it_is_that_of_the_items() {
        let (start, _) = RESPONSES.split_once("data: {\"type\":\"response.completed\"").unwrap();
        let end = "data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r1\",\"status\":\"completed\",\"output\":[]}}";
        let response = whole(Api::OpenaiResponses, &format!("{start}{end}"));
        assert_eq!((response.content.as_deref(), response.tool_calls.len()), (Some("Grüße"), 1));
    }

    #[test]
    fn a_cut_stream_keeps_what_came_and_has_no_finish_reason() {
        for (api, text) in ALL {
            let cut = read(api, &[&text.as_bytes()[..text.len() * 2 / 3]], true);
            assert!(!cut.is_complete, "{api:?}");
            let response = cut.response.unwrap();
            assert!(response.content.is_some_and(|text| text.starts_with("Grü")), "{api:?}");
            assert_eq!(response.finish_reason, None);
        }
        assert_eq!(read(Api::OpenaiChat, &[b": hello\n\n"], true).response, None);
    }

    #[test]
    fn a_chat_answer_may_end_without_its_last_event_but_not_break_off() {
        let (text, _) = CHAT.split_once("data: [DONE]").unwrap();
        let ended = read(Api::OpenaiChat, &[text.as_bytes()], false);
        assert!(ended.is_complete && ended.response.unwrap().finish_reason.is_some());
        let cut = read(Api::OpenaiChat, &[text.as_bytes()], true);
        assert!(!cut.is_complete && cut.response.unwrap().finish_reason.is_none());
    }

    #[test]
    fn errors_within_a_stream_are_kept() {
        for (api, event) in [
            (Api::OpenaiChat, r#"data: {"error":{"message":"busy"}}"#),
            (Api::AnthropicMessages, r#"data: {"type":"error","error":{"message":"busy"}}"#),
            (Api::OpenaiResponses, r#"data: {"type":"error","message":"busy"}"#),
        ] {
            let answer = read(api, &[event.as_bytes()], false);
            assert_eq!((answer.is_complete, answer.error.as_deref()), (false, Some("busy")), "{api:?}");
        }
        let failed = r#"data: {"type":"response.failed","response":{"status":"failed","error":{"message":"busy"}}}"#;
        let answer = read(Api::OpenaiResponses, &[failed.as_bytes()], false);
        assert_eq!(answer.error.as_deref(), Some("busy"));
        assert_eq!(answer.response.unwrap().finish_reason.as_deref(), Some("failed"));
    }

    #[test]
    fn the_end_is_seen_before_its_line_or_event_has_ended() {
        for (api, text) in ALL {
            let end = text.trim_end();
            let (mut stream, bytes) = (AnswerStream::new(api), end.as_bytes());
            stream.push(&bytes[..bytes.len() - 1]);
            assert!(!stream.has_ended(), "{api:?}");
            stream.push(&bytes[bytes.len() - 1..]);
            assert!(stream.has_ended(), "{api:?}");
        }
    }

    #[test]
    fn tool_calls_of_odd_servers_are_separate() {
        let chunk =
            |calls: Value| format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {"tool_calls": calls}}]}));
        let call = |id: &str, index: Option<u64>| {
            let mut call = json!({"id": id, "function": {"name": "f", "arguments": "{}"}});
            if let Some(index) = index {
                call["index"] = json!(index);
            }
            call
        };
        for index in [None, Some(0)] {
            let text = chunk(json!([call("a", index)])) + &chunk(json!([call("b", index)]));
            let response = read(Api::OpenaiChat, &[text.as_bytes()], false).response.unwrap();
            let ids: Vec<_> = response.tool_calls.iter().map(|call| call.id.as_deref().unwrap()).collect();
            assert_eq!(ids, ["a", "b"], "{index:?}");
        }
        // The id and the name in each chunk.
        let text = chunk(json!([call("a", Some(0))])) + &chunk(json!([call("a", Some(0))]));
        let calls = read(Api::OpenaiChat, &[text.as_bytes()], false).response.unwrap().tool_calls;
        assert_eq!((calls.len(), calls[0].function.name.as_str()), (1, "f"));
        assert_eq!(calls[0].function.arguments, "{}{}");
    }

    proptest! {
        #[test]
        fn an_answer_does_not_depend_on_its_pieces(which in 0_usize..3, size in 1_usize..200) {
            let (api, text) = ALL[which];
            let pieces: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
            prop_assert_eq!(read(api, &pieces, false), read(api, &[text.as_bytes()], false));
        }

        #[test]
        fn hostile_events_do_no_harm(
            which in 0_usize..3,
            events in prop::collection::vec(("[a-z_.]{0,8}|content_block_start|content_block_delta|response.output_item.added|response.output_text.delta", 0_u64..u64::MAX, any::<bool>()), 0..10),
        ) {
            let mut text = String::new();
            for (kind, index, is_nested) in events {
                let inner = if is_nested { json!({"text": 1, "content": {"a": []}, "tool_calls": [[], 1, {"index": index}]}) } else { json!("x") };
                text += &format!("data: {}\n\n", json!({"type": kind, "index": index, "output_index": index, "delta": inner,
                    "content_block": inner, "item": inner, "choices": [{"index": index, "delta": inner}, inner]}));
            }
            let _ = read(ALL[which].0, &[text.as_bytes()], false);
        }
    }
}
