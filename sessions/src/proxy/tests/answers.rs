//! What the client gets, what is recorded of it, and in which order.

use counterproof_tests::{Gate, ModelAnswer, ModelServer, Step, brotli_pieces, scripted_answer, zstd_pieces};
use serde_json::json;

use super::kit::{Client, RunningProxy, post, waits};
use crate::event::{EventBody, Usage};

const PATHS: [&str; 3] = ["/v1/chat/completions", "/v1/responses", "/v1/messages"];

const STREAM: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"one\"}}]}\n\n\
    data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"two\"},\"finish_reason\":\"stop\"}]}\n\n";

#[test]
fn the_client_gets_the_bytes_of_the_server_and_the_record_has_them() {
    for path in PATHS {
        for model in ["text", "tools", "no-usage", "gzip", "br", "zstd", "huge", "closing", "failing"] {
            for stream in [false, true] {
                let server = ModelServer::start(|_, request| scripted_answer(request, 0));
                let proxy = RunningProxy::start(&server);
                let base = if path.ends_with("messages") { &proxy.anthropic } else { &proxy.openai };
                let body = json!({"model": model, "messages": [{"role": "user", "content": "é"}], "input": "x",
                    "max_tokens": 9, "stream": stream, "stream_options": {"include_usage": true}});
                let direct = post(&server.origin(), path, &body);
                let proxied = post(base, path, &body);
                let case = format!("{path} {model} {stream}");
                assert!(proxied.is_whole && proxied.body == direct.body, "{case}");
                assert_eq!((&proxied.status, proxied.end_to_end()), (&direct.status, direct.end_to_end()), "{case}");
                let (records, counts) = proxy.finish();
                let (event, call) = records.calls().remove(0);
                assert_eq!((counts.model_requests, counts.recorded, counts.failures), (1, 1, 0));
                let [first, second] = &server.requests()[..] else { panic!("two requests") };
                assert_eq!((&first.target, &first.body), (&second.target, &second.body));
                assert_eq!(call.request.body, second.json(), "{case}");
                assert_eq!(call.request.max_tokens, 9);
                if model == "failing" {
                    let error = event.error.unwrap();
                    assert_eq!((error.kind.as_str(), error.status), ("http", Some(400)), "{case}");
                    assert_eq!(error.message, "invalid_request_error: no such tool");
                    continue;
                }
                assert_eq!(event.error, None, "{case}");
                let response = call.response.unwrap();
                let text = response.content.unwrap();
                assert!(text.starts_with("Grüße") || text.starts_with("häh häh"), "{case}");
                assert_eq!(response.tool_calls.len(), if model == "tools" { 2 } else { 0 }, "{case}");
                let usage = Usage::new(Some(20), Some(5), Some(8));
                assert_eq!(response.usage, (model != "no-usage").then_some(usage), "{case}");
                assert!(response.finish_reason.is_some());
            }
        }
    }
}

#[test]
fn a_streamed_answer_is_recorded_like_one_without_streaming() {
    for path in PATHS {
        let server = ModelServer::start(|_, request| scripted_answer(request, 0));
        let proxy = RunningProxy::start(&server);
        let base = if path.ends_with("messages") { &proxy.anthropic } else { &proxy.openai };
        for stream in [false, true] {
            let options = json!({"include_usage": true});
            post(base, path, &json!({"model": "tools", "stream": stream, "stream_options": options}));
        }
        let (records, _) = proxy.finish();
        let [whole, streamed] = [0, 1].map(|number| records.calls()[number].1.response.clone().unwrap());
        assert_eq!(whole.tool_calls, streamed.tool_calls, "{path}");
        assert_eq!((&whole.content, &whole.usage), (&streamed.content, &streamed.usage));
        assert_eq!((&whole.finish_reason, &whole.model), (&streamed.finish_reason, &streamed.model));
    }
}

#[test]
fn the_end_of_a_stream_waits_for_its_record_and_nothing_before_it_does() {
    let steps = [STREAM, "data: [DO", "NE]", "\n\n"].map(|piece| Step::Send(piece.into()));
    let server = ModelServer::start(move |_, _| ModelAnswer::events("", 1).chunked(steps.clone()));
    let gates = <[Gate; 2]>::default();
    let proxy = RunningProxy::recording(&server, false, waits(&gates));
    let mut client = Client::connect(&proxy.openai);
    client.post("/v1/chat/completions", "", b"{}");
    let [started, gate] = gates;
    let read = client.read_until("stop");
    started.wait();
    assert!(!(read + &client.available()).contains("NE]"));
    gate.open();
    client.read_until("NE]");
    assert_eq!(proxy.records.calls().len(), 1);
}

#[test]
fn the_end_of_a_compressed_stream_waits_for_its_record() {
    let (first, second) = STREAM.split_at(STREAM.find("\n\n").unwrap() + 2);
    let texts = [first, second, "data: [DONE]\n\n"].map(str::as_bytes);
    for (coding, pieces) in [("br", brotli_pieces(&texts)), ("zstd", zstd_pieces(&texts))] {
        let server = ModelServer::start(move |_, _| {
            let steps = pieces.iter().map(|piece| Step::Send(piece.clone()));
            ModelAnswer::events("", 1).header("Content-Encoding", coding).chunked(steps)
        });
        let gates = <[Gate; 2]>::default();
        let proxy = RunningProxy::recording(&server, false, waits(&gates));
        let mut client = Client::connect(&proxy.openai);
        client.post("/v1/chat/completions", "", b"{}");
        let [started, gate] = gates;
        let read = client.read_until("one");
        started.wait();
        assert!(!(read + &client.available()).contains("[DONE]"), "{coding}");
        gate.open();
        client.read_until("[DONE]");
        let (event, call) = proxy.records.calls().remove(0);
        assert_eq!((event.error, call.response.unwrap().content.as_deref()), (None, Some("onetwo")), "{coding}");
    }
}

#[test]
fn the_last_piece_of_a_document_waits_for_its_record() {
    for is_closing in [false, true] {
        let pieces = ["{\"choices\":", "[{\"message\":", "{\"content\":\"last\"}}]}"];
        let server = ModelServer::start(move |_, _| {
            let steps = pieces.map(|piece| Step::Send(piece.into()));
            let answer = ModelAnswer::new(200, "application/json", "").chunked(steps);
            if is_closing { answer.closing() } else { answer }
        });
        let gates = <[Gate; 2]>::default();
        let proxy = RunningProxy::recording(&server, false, waits(&gates));
        let mut client = Client::connect(&proxy.openai);
        client.post("/v1/chat/completions", "", b"{}");
        let [started, gate] = gates;
        started.wait();
        // The head comes at once. The last piece may have come together with earlier ones.
        let read = client.read_until("\r\n\r\n") + &client.available();
        assert!(!read.contains("last"), "{read}");
        gate.open();
        client.read_until("last");
        let call = proxy.records.calls().remove(0).1;
        assert_eq!(call.response.unwrap().content.as_deref(), Some("last"));
    }
}

#[test]
fn answered_tool_calls_are_durable_before_the_request_leaves() {
    let server = std::sync::Arc::new(ModelServer::start(|_, request| scripted_answer(request, 0)));
    let seen = server.clone();
    let proxy = RunningProxy::recording(&server, false, move |events| {
        if events.iter().any(|event| matches!(event.body, EventBody::ToolCall(_))) {
            assert_eq!(seen.requests().len(), 1, "the second request has not left");
        }
        Ok(())
    });
    post(&proxy.openai, PATHS[0], &json!({"model": "tools", "messages": [], "stream": true}));
    let messages = json!([{"role": "assistant"}, {"role": "tool", "tool_call_id": "call_a", "content": "ü\nexit code 3"},
        {"role": "tool", "tool_call_id": "call_b", "content": "fn main() {}"}]);
    for _ in 0..2 {
        post(&proxy.openai, PATHS[0], &json!({"model": "tools", "messages": messages}));
    }
    let (records, counts) = proxy.finish();
    assert_eq!(counts.failures, 0);
    let kinds: Vec<_> = records.events.lock().unwrap().iter().map(|event| event.body.kind()).collect();
    assert_eq!(kinds, ["llm_call", "tool_call", "command", "tool_call", "llm_call", "llm_call"]);
}

#[test]
fn keys_are_reported_once_and_recorded_nowhere() {
    let server = ModelServer::start(|_, request| scripted_answer(request, 0));
    let proxy = RunningProxy::start(&server);
    for path in PATHS {
        post(&proxy.openai, path, &json!({"model": "text"}));
    }
    for request in server.requests() {
        assert_eq!(request.header("authorization"), Some("Bearer sk-test-1"));
        assert_eq!(request.header("x-api-key"), Some("sk-test-2"));
    }
    let (records, _) = proxy.finish();
    assert_eq!(*records.secrets.lock().unwrap(), ["sk-test-1", "sk-test-2"]);
    let recorded = serde_json::to_string(&*records.events.lock().unwrap()).unwrap();
    assert!(!recorded.contains("sk-test"));
}

#[test]
fn an_answer_in_an_unknown_coding_is_passed_on_and_the_record_states_it() {
    let bytes = b"\x1b\x03not read";
    let answer = ModelAnswer::new(200, "application/json", bytes).header("Content-Encoding", "gzip, br");
    let server = ModelServer::start(move |_, _| answer.clone());
    let proxy = RunningProxy::start(&server);
    let answer = post(&proxy.openai, PATHS[1], &json!({}));
    assert_eq!((answer.body.as_slice(), answer.header("content-encoding")), (&bytes[..], Some("gzip, br")));
    let (records, _) = proxy.finish();
    let (event, call) = records.calls().remove(0);
    let error = event.error.unwrap();
    assert!(error.kind == "recording" && error.message.contains("`gzip, br`"), "{error:?}");
    assert_eq!(call.response.unwrap().body, serde_json::Value::Null);
}
