//! Servers, clients and stores that fail.

use counterproof_tests::{Gate, ModelAnswer, ModelServer, Step, scripted_answer};
use serde_json::json;

use super::kit::{Client, RunningProxy, post};
use crate::event::EventBody;

const CHAT: &str = "/v1/chat/completions";

const START: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"one\"}}]}\n\n";

#[test]
fn a_cut_answer_is_cut_for_the_client_too_and_its_record_has_what_came() {
    for (path, stream) in [(CHAT, true), ("/v1/responses", true), ("/v1/messages", true), (CHAT, false)] {
        let server = ModelServer::start(|_, request| scripted_answer(request, 0));
        let proxy = RunningProxy::start(&server);
        let body = json!({"model": "cut", "stream": stream});
        let (direct, proxied) = (post(&server.origin(), path, &body), post(&proxy.openai, path, &body));
        assert!(!direct.is_whole && !proxied.is_whole && direct.body == proxied.body, "{path} {stream}");
        let (records, _) = proxy.finish();
        assert_eq!(records.error_kinds(), [Some("cut".to_owned())]);
        let response = records.calls().remove(0).1.response.unwrap();
        assert_eq!((response.content.is_some(), response.finish_reason), (stream, None), "{path}");
    }
}

#[test]
fn each_attempt_is_a_record() {
    let server = ModelServer::start(|number, request| scripted_answer(request, number));
    let proxy = RunningProxy::start(&server);
    let body = json!({"model": "busy", "stream": true});
    assert_eq!(post(&proxy.openai, CHAT, &body).code(), 429);
    assert_eq!(post(&proxy.openai, CHAT, &body).code(), 200);
    let (records, counts) = proxy.finish();
    assert_eq!(records.error_kinds(), [Some("http".to_owned()), None]);
    assert_eq!(records.calls()[0].0.error.as_ref().unwrap().status, Some(429));
    assert_eq!(counts.recorded, 2);
}

#[test]
fn a_server_that_does_not_answer_is_a_network_error() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let proxy = RunningProxy::with(&format!("http://127.0.0.1:{port}"), false, None);
    let answer = post(&proxy.openai, CHAT, &json!({"model": "text"}));
    assert!(answer.code() == 502 && String::from_utf8_lossy(&answer.body).contains("cannot connect"), "{answer:?}");
    let (records, _) = proxy.finish();
    let (event, call) = records.calls().remove(0);
    assert_eq!((event.error.unwrap().kind.as_str(), call.response), ("network", None));
    assert_eq!(call.request.model.as_deref(), Some("text"));
}

#[test]
fn a_client_that_disconnects_ends_the_request_to_the_server() {
    let closed = Gate::default();
    let steps = [Step::Send(START.into()), Step::UntilClosed(closed.clone())];
    let server = ModelServer::start(move |_, _| ModelAnswer::events("", 1).chunked(steps.clone()));
    let recorded = Gate::default();
    let has_recorded = recorded.clone();
    let proxy = RunningProxy::recording(&server, false, move |_| {
        has_recorded.open();
        Ok(())
    });
    let mut client = Client::connect(&proxy.openai);
    client.post(CHAT, "", b"{}");
    client.read_until("one");
    drop(client);
    closed.wait();
    recorded.wait();
    let (records, _) = proxy.finish();
    let (event, call) = records.calls().remove(0);
    assert_eq!(event.error.unwrap().kind, "cut");
    assert_eq!(call.response.unwrap().content.as_deref(), Some("one"));
}

#[test]
fn a_client_that_disconnects_before_the_answer_leaves_a_record() {
    let (arrived, late, recorded) = (Gate::default(), Gate::default(), Gate::default());
    let (has_arrived, answers) = (arrived.clone(), late.clone());
    let server = ModelServer::start(move |_, request| {
        has_arrived.open();
        scripted_answer(request, 0).after(&answers)
    });
    let has_recorded = recorded.clone();
    let proxy = RunningProxy::recording(&server, false, move |_| {
        has_recorded.open();
        Ok(())
    });
    let mut client = Client::connect(&proxy.openai);
    client.post(CHAT, "", b"{\"model\":\"text\"}");
    arrived.wait();
    drop(client);
    recorded.wait();
    late.open();
    let (records, _) = proxy.finish();
    let (event, call) = records.calls().remove(0);
    assert_eq!((event.error.unwrap().kind.as_str(), call.response), ("cut", None));
}

#[test]
fn a_store_that_fails_or_panics_takes_nothing_from_the_agent() {
    for panics in [false, true] {
        let server = ModelServer::start(|_, request| scripted_answer(request, 0));
        let proxy = RunningProxy::recording(&server, false, move |_| {
            assert!(!panics, "the store of a test panics");
            Err(Box::<dyn std::error::Error + Send + Sync>::from("disk full").into())
        });
        for stream in [true, false] {
            let body = json!({"model": "tools", "stream": stream});
            let direct = post(&server.origin(), CHAT, &body);
            let answer = post(&proxy.openai, CHAT, &body);
            assert!(answer.is_whole && answer.body == direct.body);
        }
        let (records, counts) = proxy.finish();
        assert_eq!((counts.model_requests, counts.recorded, counts.failures), (2, 0, 2));
        let warnings = records.warnings.lock().unwrap();
        assert!(warnings.len() == 1 && warnings[0].ends_with("the agent goes on"), "{warnings:?}");
    }
}

#[test]
fn a_required_record_that_fails_withholds_the_end_of_the_answer_and_refuses_further_requests() {
    for stream in [true, false] {
        let server = ModelServer::start(|_, request| scripted_answer(request, 0));
        let proxy = RunningProxy::recording(&server, true, |_| {
            Err(Box::<dyn std::error::Error + Send + Sync>::from("disk full").into())
        });
        let body = json!({"model": "text", "stream": stream});
        let first = post(&proxy.openai, CHAT, &body);
        assert!(!first.is_whole && !String::from_utf8_lossy(&first.body).contains("[DONE]"), "{first:?}");
        assert_eq!(post(&proxy.openai, CHAT, &body).code(), 502);
        assert_eq!(server.requests().len(), 1);
        let (records, counts) = proxy.finish();
        assert_eq!((counts.model_requests, counts.recorded), (2, 0));
        assert!(records.warnings.lock().unwrap()[0].ends_with("further requests are refused"));
    }
}

#[test]
fn parallel_calls_are_all_recorded() {
    let server = ModelServer::start(|_, request| scripted_answer(request, 0));
    let proxy = RunningProxy::start(&server);
    std::thread::scope(|scope| {
        for number in 0..8 {
            let base = &proxy.openai;
            scope.spawn(move || {
                let mut client = Client::connect(base);
                for turn in 0..5 {
                    let body = json!({"model": "text", "stream": turn % 2 == 0, "input": [number, turn]});
                    client.post("/v1/responses", "", body.to_string().as_bytes());
                    assert!(client.answer(false).is_whole);
                }
            });
        }
    });
    let (records, counts) = proxy.finish();
    assert_eq!((counts.recorded, records.calls().len()), (40, 40));
    let sum: u64 = records.calls().iter().filter_map(|(_, call)| call.response.as_ref()?.usage?.total_tokens).sum();
    assert_eq!(sum, 40 * 25);
    let events = records.events.lock().unwrap();
    assert!(events.iter().all(|event| matches!(event.body, EventBody::LlmCall(_)) && event.error.is_none()));
}
