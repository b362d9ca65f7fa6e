//! Requests in all forms: those that ask no model, and those that are refused.

use counterproof_tests::{ModelAnswer, ModelRequest, ModelServer, scripted_answer};
use serde_json::json;

use super::super::{MAX_RECORDED_REQUEST, SubstitutedKey};
use super::kit::{Client, MemoryRecords, RunningProxy};

fn head_of(request: &str, base_url: &str, is_head: bool) -> super::kit::ClientAnswer {
    let mut client = Client::connect(base_url);
    client.send(request.as_bytes());
    client.answer(is_head)
}

#[test]
fn other_requests_pass_and_are_not_recorded() {
    let server = ModelServer::start(|_, request| match request.target.as_str() {
        "/v1/files" => ModelAnswer::new(307, "text/plain", "there").header("Location", "https://elsewhere.example/"),
        _ => scripted_answer(request, 0),
    });
    let proxy = RunningProxy::start(&server);
    let models =
        head_of("GET /v1/models?limit=2 HTTP/1.1\r\nHost: localhost\r\nX-B: 1\r\nX-A: 2\r\n\r\n", &proxy.openai, false);
    assert!(models.code() == 200 && String::from_utf8_lossy(&models.body).contains("list"));
    let head = head_of("HEAD /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n", &proxy.openai, true);
    assert!(head.header("content-length").is_some_and(|length| length != "0"), "{head:?}");
    let mut client = Client::connect(&proxy.anthropic);
    client.post("/v1/messages/count_tokens", "", b"{}");
    assert_eq!(client.answer(false).body, b"{\"input_tokens\":7}");
    let redirect = head_of("GET /v1/files HTTP/1.1\r\nHost: localhost\r\n\r\n", &proxy.openai, false);
    assert_eq!((redirect.code(), redirect.header("location")), (307, Some("https://elsewhere.example/")));
    let requests = server.requests();
    assert_eq!(requests.len(), 4);
    assert_eq!((requests[0].method.as_str(), requests[0].target.as_str()), ("GET", "/v1/models?limit=2"));
    let names: Vec<_> =
        requests[0].headers.iter().map(|(name, _)| name.as_str()).filter(|it| it.starts_with("x-")).collect();
    assert_eq!(names, ["x-b", "x-a"]);
    assert!(requests[0].header("content-length").is_none() && requests[0].body.is_empty());
    let (records, counts) = proxy.finish();
    assert!(records.events.lock().unwrap().is_empty());
    assert_eq!((counts.unrecorded_requests, counts.model_requests), (4, 0));
}

#[test]
fn requests_of_web_pages_and_to_other_servers_are_refused() {
    let server = ModelServer::start(|_, request| scripted_answer(request, 0));
    let proxy = RunningProxy::start(&server);
    for (request, expected) in [
        ("GET /v1/models HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403),
        ("GET /v1/models HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n\r\n", 403),
        ("GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 403),
        ("CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n", 403),
        ("CONNECT localhost:443 HTTP/1.1\r\nHost: localhost:443\r\n\r\n", 405),
        ("GET /v1/responses HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 426),
        ("POST /v1/responses HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 2\r\n\r\n{}", 403),
    ] {
        assert_eq!(head_of(request, &proxy.openai, false).code(), expected, "{request}");
    }
    assert!(server.requests().is_empty());
    let (records, _) = proxy.finish();
    assert!(records.events.lock().unwrap().is_empty());
}

#[test]
fn bodies_in_chunks_and_after_a_continue_arrive_whole() {
    let server = ModelServer::start(|_, request| scripted_answer(request, 0));
    let proxy = RunningProxy::start(&server);
    let mut client = Client::connect(&proxy.openai);
    client.send(b"POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
    for piece in ["{\"model\":", "\"text\",\"input\":\"\u{e9}\"}"] {
        client.send(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes());
    }
    client.send(b"0\r\n\r\n");
    assert_eq!(client.answer(false).code(), 200);
    // The same connection.
    let body = json!({"model": "text"}).to_string();
    let head = format!(
        "POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    client.send(head.as_bytes());
    assert_eq!(client.answer(false).code(), 100);
    client.send(body.as_bytes());
    assert_eq!(client.answer(false).code(), 200);
    let (records, _) = proxy.finish();
    let recorded: Vec<_> = records.calls().into_iter().map(|(_, call)| call.request.body).collect();
    assert_eq!(recorded, server.requests().iter().map(ModelRequest::json).collect::<Vec<_>>());
    assert_eq!(recorded[0], json!({"model": "text", "input": "é"}));
}

#[test]
fn a_request_beyond_the_limit_arrives_whole_and_its_record_states_it() {
    let server = ModelServer::start(|_, _| ModelAnswer::json(200, &json!({})));
    let proxy = RunningProxy::start(&server);
    let body = vec![b' '; MAX_RECORDED_REQUEST + 100];
    let mut client = Client::connect(&proxy.openai);
    client.post("/v1/responses", "", &body);
    assert_eq!(client.answer(false).code(), 200);
    assert!(server.requests()[0].body == body);
    let (records, _) = proxy.finish();
    let (event, call) = records.calls().remove(0);
    assert_eq!((event.error.unwrap().kind.as_str(), call.request.model), ("recording", None));
    assert!(call.response.is_some());
}

#[test]
fn requests_that_cannot_be_read_are_passed_on_and_their_records_state_it() {
    let server = ModelServer::start(|_, request| scripted_answer(request, 0));
    let proxy = RunningProxy::start(&server);
    let deep = "[".repeat(10_000);
    for (headers, body) in [("", "{not JSON"), ("", &*deep), ("Content-Encoding: zstd\r\n", "{}"), ("", "")] {
        let mut client = Client::connect(&proxy.openai);
        client.post("/v1/chat/completions", headers, body.as_bytes());
        assert_eq!(client.answer(false).code(), 200);
        assert_eq!(server.requests().last().unwrap().body, body.as_bytes());
    }
    let (records, _) = proxy.finish();
    assert_eq!(records.error_kinds(), vec![Some("recording".to_owned()); 4]);
}

#[test]
fn the_server_gets_the_key_in_place_of_the_placeholder_and_bodies_are_not_changed() {
    let server = ModelServer::start(|_, request| scripted_answer(request, 0));
    let key = SubstitutedKey::new("sk-placeholder", "sk-real");
    let proxy = RunningProxy::of(&server.origin(), true, MemoryRecords::default(), Some(key));
    let body = json!({"model": "text", "input": "sk-placeholder"}).to_string();
    let headers = "Authorization: Bearer sk-placeholder\r\nX-Api-Key: sk-placeholder\r\nX-Other: sk-placeholder\r\n";
    for (base_url, path) in [(&proxy.openai, "/v1/responses"), (&proxy.anthropic, "/v1/messages")] {
        let mut client = Client::connect(base_url);
        client.post(path, headers, body.as_bytes());
        assert_eq!(client.answer(false).code(), 200);
    }
    // A key of its own is passed on.
    let own = "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer sk-own\r\n\r\n";
    assert_eq!(head_of(own, &proxy.openai, false).code(), 200);
    let requests = server.requests();
    for request in &requests[..2] {
        assert_eq!(request.header("authorization"), Some("Bearer sk-real"));
        assert_eq!((request.header("x-api-key"), request.header("x-other")), (Some("sk-real"), Some("sk-placeholder")));
        assert_eq!(request.body, body.as_bytes());
    }
    assert_eq!(requests[2].header("authorization"), Some("Bearer sk-own"));
    let secrets = proxy.finish().0.secrets.lock().unwrap().clone();
    assert!(["sk-placeholder", "sk-real"].iter().all(|secret| secrets.iter().any(|it| it == secret)), "{secrets:?}");
}

#[test]
fn a_request_beyond_the_budget_does_not_leave() {
    let server = ModelServer::start(|_, request| scripted_answer(request, 0));
    let records = MemoryRecords { allowed: Some(2.into()), ..MemoryRecords::default() };
    let proxy = RunningProxy::of(&server.origin(), true, records, None);
    let codes = [(); 4].map(|()| {
        let answer = super::kit::post(&proxy.openai, "/v1/responses", &json!({"model": "text"}));
        (answer.code(), String::from_utf8_lossy(&answer.body).contains("budget"))
    });
    assert_eq!(codes, [(200, false), (200, false), (429, true), (429, true)]);
    assert_eq!(server.requests().len(), 2);
    assert_eq!(proxy.finish().0.calls().len(), 2);
}
