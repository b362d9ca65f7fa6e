//! `guard proxy` with servers, clients and machines that fail.

use std::io::Write as _;

use serde_json::{Value, json};

use crate::guard_kit::{GuardFolder, names};
use crate::guard_proxy_kit::{GuardProxy, HttpServer, call, respond, start_events, write_chunk};

const DENY: &str = "  - {rule_id: d, kind: deny, match: {tool_name: {glob: [push]}}}\n";

/// A batch of an allowed and a refused call.
fn batch() -> String {
    format!("[{},{}]", call(1, "echo", &json!({})), call(2, "push", &json!({})))
}

/// The answer to a batch of which the proxy refuses a call, and the statuses of both calls.
#[track_caller]
fn answer_of(status: &'static str, headers: &'static str, body: &'static str) -> (u16, Value, Vec<Value>) {
    let server = HttpServer::start(move |_, connection| respond(connection, status, headers, body.as_bytes()));
    let folder = GuardFolder::new().with_rules(DENY);
    let mut proxy = GuardProxy::start(&folder, &server.url());
    let response = proxy.post("", &batch());
    assert_eq!(proxy.stop(), Some(0));
    let statuses = folder.events_of("tool_call_end").iter().map(|end| end["status"].clone()).collect();
    (response.status(), response.json(), statuses)
}

const JSON: &str = "content-type: application/json\r\n";

#[test]
fn refusals_of_a_batch_are_not_lost_whatever_the_server_answers_to_the_rest() {
    for (status, headers, body) in [
        ("200 OK", JSON, " {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n"),
        ("400 Bad Request", JSON, "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600,\"message\":\"no\"}}"),
        ("502 Bad Gateway", "content-type: text/html\r\n", "<p>down</p>"),
        ("401 Unauthorized", "www-authenticate: Bearer\r\n", ""),
    ] {
        let (found, answers, statuses) = answer_of(status, headers, body);
        assert!(status.starts_with(&found.to_string()), "{found}");
        let answers = answers.as_array().unwrap();
        assert_eq!((answers.len(), &answers[0]["id"], &answers[0]["error"]["code"]), (2, &json!(2), &json!(-32081)));
        assert!(answers[1].get("result").is_some() || answers[1].get("error").is_some(), "{status}: {answers:?}");
        let end = if found == 200 { "OK" } else { "ERROR" };
        assert_eq!(statuses, ["ERROR", end], "{status}");
    }
    for body in ["[]", " [ ] ", ""] {
        let (_, answers, _) = answer_of("200 OK", JSON, body);
        assert_eq!((answers.as_array().unwrap().len(), &answers[0]["id"]), (1, &json!(2)), "{body:?}");
    }
}

#[test]
fn refusals_of_a_batch_are_not_lost_if_the_server_is_down() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let folder = GuardFolder::new().with_rules(DENY);
    let proxy = GuardProxy::start(&folder, &format!("http://{address}/mcp"));
    let response = proxy.post("", &batch());
    let answers = response.json();
    assert_eq!((response.status(), &answers[0]["id"], &answers[1]["error"]["code"]), (502, &json!(2), &json!(-32603)));
}

#[test]
fn a_server_that_is_down_is_reported_once_and_the_run_has_failed() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let folder = GuardFolder::new();
    let mut proxy = GuardProxy::start_with_stderr(&folder, &format!("http://user:secret@{address}/mcp?key=hidden"));
    for id in 1..=3 {
        assert_eq!(proxy.post("", &call(id, "echo", &json!({}))).status(), 502);
    }
    let (code, stderr) = proxy.stop_with_stderr();
    let lines: Vec<_> = stderr.lines().collect();
    assert_eq!((code, lines.len()), (Some(0), 2), "{stderr}");
    let reported = format!(
        "counterproof guard: the server does not answer: the proxy cannot connect to http://{address}/mcp: \
         Connection refused"
    );
    assert!(lines[0].starts_with(&reported) && lines[0].contains("`--upstream`"), "{stderr}");
    assert!(
        lines[1].contains("did not answer: 3 of 3; the status of the run is `FAILED`") && !stderr.contains("secret"),
        "{stderr}"
    );
    let message = folder.events_of("tool_call_end")[0]["error"]["message"].clone();
    assert!(message.as_str().unwrap().starts_with("the proxy cannot connect to http://"), "{message}");
    let events = folder.events();
    assert_eq!(events.last().unwrap()["run"]["status"], "FAILED");
    let health = folder.events_of("shim_health");
    assert_eq!((health.len(), &health[0]["health"]["code"]), (1, &json!("server_unreachable")));
}

#[test]
fn a_server_that_was_down_for_a_time_does_not_fail_the_run() {
    let server = HttpServer::start(|request, connection| {
        if request.text().contains("break") {
            connection.shutdown(std::net::Shutdown::Both).unwrap();
        } else {
            respond(connection, "200 OK", JSON, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
        }
    });
    let folder = GuardFolder::new();
    let mut proxy = GuardProxy::start_with_stderr(&folder, &server.url());
    let statuses = ["break", "echo", "break"].map(|tool| proxy.post("", &call(1, tool, &json!({}))).status());
    assert_eq!(statuses, [502, 200, 502]);
    let (_, stderr) = proxy.stop_with_stderr();
    assert!(stderr.contains("closed the connection without a response"), "{stderr}");
    assert!(stderr.contains("requests that the server did not answer: 2 of 3"), "{stderr}");
    assert_eq!(folder.events().last().unwrap()["run"]["status"], "SUCCEEDED");
}

#[test]
fn a_redirect_within_the_server_leads_back_to_the_proxy() {
    let server = HttpServer::start(|request, connection| {
        let location = format!("location: http://{}/mcp/?x=//y\r\n", request.header("host").unwrap());
        respond(connection, "307 Temporary Redirect", &location, b"");
    });
    let folder = GuardFolder::new();
    let proxy = GuardProxy::start(&folder, &server.url());
    let response = proxy.post("", &call(1, "x", &json!({})));
    assert_eq!((response.status(), response.header("location")), (307, Some("/mcp/?x=//y")));
}

/// True if this process ignores a signal. Its children inherit that.
fn is_ignored(signal: rustix::process::Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    mask >> (signal.as_raw() - 1) & 1 == 1
}

#[test]
fn signals_of_a_terminal_end_the_run() {
    use rustix::process::Signal;

    for signal in [Signal::HUP, Signal::QUIT, Signal::INT] {
        // The proxy ignores what it was told to ignore, as programs below `nohup` do. So do the tests then.
        if is_ignored(signal) {
            continue;
        }
        let server = HttpServer::of_json(|_| json!({}));
        let folder = GuardFolder::new();
        let mut proxy = GuardProxy::start(&folder, &server.url());
        proxy.signal(signal);
        assert_eq!(proxy.wait(), Some(0), "{signal:?}");
        assert_eq!(names(&folder.events()).last(), Some(&"run_end"), "{signal:?}");
    }
}

#[test]
fn a_document_under_way_breaks_off_when_the_proxy_stops() {
    let server = HttpServer::start(|_, connection| {
        connection
            .write_all(format!("HTTP/1.1 200 OK\r\n{JSON}transfer-encoding: chunked\r\n\r\n").as_bytes())
            .unwrap();
        write_chunk(connection, b"{\"a\":");
    });
    let folder = GuardFolder::new();
    let mut proxy = GuardProxy::start(&folder, &server.url());
    let mut client = proxy.connect();
    client.post("", br#"{"id":1,"method":"tools/list"}"#);
    client.head();
    assert_eq!(client.chunk(), Some(Ok(b"{\"a\":".to_vec())));
    assert_eq!(proxy.stop(), Some(0));
    assert_eq!(client.chunk(), Some(Err(())), "the document has no end");
}

#[test]
fn the_calls_of_a_session_that_the_server_has_forgotten_end() {
    let server = HttpServer::start(|request, connection| {
        if request.text().contains("tools/call") {
            start_events(connection, "");
            write_chunk(connection, b"id: 1\ndata: \n\n");
            write_chunk(connection, b"");
        } else {
            respond(connection, "404 Not Found", "", b"");
        }
    });
    let folder = GuardFolder::new();
    let mut proxy = GuardProxy::start(&folder, &server.url());
    proxy.post("mcp-session-id: s\r\n", &call(1, "x", &json!({})));
    assert_eq!(folder.events_of("tool_call_end").len(), 0, "the stream can be resumed");
    proxy.post("mcp-session-id: s\r\n", r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#);
    let ends = folder.events_of("tool_call_end");
    assert_eq!((&ends[0]["status"], &ends[0]["error"]["class"]), (&json!("ERROR"), &json!("transport")));
    proxy.stop();
}

#[test]
fn a_body_for_which_there_is_no_room_is_answered_with_an_error() {
    let server = HttpServer::of_json(|_| json!({}));
    let folder = GuardFolder::new();
    let missing = folder.sandbox.path("missing").to_string();
    let folder = folder.with_variable("TMPDIR", &missing);
    let mut proxy = GuardProxy::start(&folder, &server.url());
    let response = proxy.post("", &call(1, "x", &json!({"text": "x".repeat(2_000_000)})));
    assert_eq!((response.status(), &response.json()["error"]["code"]), (507, &json!(-32603)));
    proxy.stop();
    assert_eq!(folder.events_of("shim_health")[0]["health"]["code"], "uninspected_message");
}

#[test]
fn a_client_that_sends_nothing_more_is_answered_and_disconnected() {
    let server = HttpServer::of_json(|_| json!({}));
    let folder = GuardFolder::new();
    let proxy = GuardProxy::start_with(&folder, &server.url(), &["--client-timeout", "100ms"]);
    // No request, an incomplete head, and an incomplete body of an announced length.
    let (mut idle, mut head, mut body) = (proxy.connect(), proxy.connect(), proxy.connect());
    head.send(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\n");
    body.send(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1048576\r\n\r\n{");
    let response = body.response();
    assert_eq!((response.status(), response.header("connection")), (408, Some("close")));
    assert!(response.text().contains("the client sent nothing for 100ms"), "{response:?}");
    for connection in [&mut idle, &mut head, &mut body] {
        assert!(connection.is_closed());
    }
    assert_eq!(server.received(), []);
}

#[test]
fn a_response_may_take_longer_than_the_time_limit_of_clients() {
    let (answer, answers) = std::sync::mpsc::channel();
    let answers = std::sync::Mutex::new(answers);
    let server = HttpServer::start(move |_, connection| {
        answers.lock().unwrap().recv().unwrap();
        respond(connection, "200 OK", JSON, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
    });
    let folder = GuardFolder::new();
    let proxy = GuardProxy::start_with(&folder, &server.url(), &["--client-timeout", "100ms"]);
    let mut waiting = proxy.connect();
    waiting.post("", call(1, "x", &json!({})).as_bytes());
    // The time limit of a later connection has passed once it is closed.
    assert!(proxy.connect().is_closed());
    answer.send(()).unwrap();
    assert_eq!(waiting.response().status(), 200);
}

#[test]
fn connections_above_the_limit_wait_for_others_to_end() {
    let server = HttpServer::of_json(|_| json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    let folder = GuardFolder::new();
    let mut proxy = GuardProxy::start_with(&folder, &server.url(), &["--max-connections", "1"]);
    let mut first = proxy.connect();
    first.post("", call(1, "a", &json!({})).as_bytes());
    first.response();
    let mut second = proxy.connect();
    second.post("", call(1, "c", &json!({})).as_bytes());
    first.post("", call(1, "b", &json!({})).as_bytes());
    first.response();
    drop(first);
    assert_eq!(second.response().status(), 200);
    let tools: Vec<_> = server.received().iter().map(|request| request.json()["params"]["name"].clone()).collect();
    assert_eq!(tools, ["a", "b", "c"]);
    drop(second);
    let (_, stderr) = proxy.stop_with_stderr();
    assert!(stderr.contains("all 1 connections are in use") && stderr.contains("`--max-connections`"), "{stderr}");
}
