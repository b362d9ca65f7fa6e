//! `guard proxy` forwards every byte as it comes.

use std::net::{Shutdown, TcpListener};
use std::sync::Mutex;
use std::sync::mpsc::channel;

use serde_json::{Value, json};

use crate::guard_kit::{GuardFolder, names};
use crate::guard_proxy_kit::{GuardProxy, HttpServer, Message, WITHIN, call, respond, start_events, write_chunk};

fn ends(folder: &GuardFolder) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    folder.events_of("tool_call_end").iter().map(|end| (text(&end["status"]), text(&end["error"]["class"]))).collect()
}

/// Headers that the connections add or change.
fn without_connection(message: &Message, names: &[&str]) -> Vec<(String, String)> {
    message.headers.iter().filter(|(name, _)| !names.contains(&name.as_str())).cloned().collect()
}

#[test]
fn a_request_and_its_response_pass_unchanged() {
    let body = " {\"id\" :1, \"result\":{\"a\":1.0,\"b\":\"\\u0061\"},\"jsonrpc\":\"2.0\"}\n";
    let server = HttpServer::start(|_, connection| {
        let headers = "content-type: application/json; charset=utf-8\r\nmcp-session-id: s 1\r\nset-cookie: a=1\r\nset-cookie: b=2\r\n";
        let body = " {\"id\" :1, \"result\":{\"a\":1.0,\"b\":\"\\u0061\"},\"jsonrpc\":\"2.0\"}\n";
        respond(connection, "404 Not Here", headers, body.as_bytes());
    });
    let folder = GuardFolder::new();
    let mut proxy = GuardProxy::start(&folder, &server.url());
    let mut connection = proxy.connect();
    let sent = "{\"method\":\"tools/call\",\"id\":1 ,\"jsonrpc\":\"2.0\",\"params\":{\"name\":\"x\",\"arguments\":{\"n\":1e2}}}\r\n";
    let head = "POST /mcp/./%7Ea?x=%20y&z HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Custom:  a,b \r\nMcp-Session-Id: s\r\nMCP-Protocol-Version: 2025-06-18\r\nLast-Event-ID: 7\r\nConnection: x-hop\r\nX-Hop: 1\r\nAccept-Encoding: br\r\n";
    connection.send(format!("{head}Content-Length: {}\r\n\r\n{sent}", sent.len()).as_bytes());
    let response = connection.response();
    assert_eq!((response.status(), response.text()), (404, body));
    assert_eq!(response.header("mcp-session-id"), Some("s 1"));
    let headers = without_connection(&response, &["date"]);
    let expected = [
        ("content-type", "application/json; charset=utf-8"),
        ("mcp-session-id", "s 1"),
        ("set-cookie", "a=1"),
        ("set-cookie", "b=2"),
        ("content-length", &body.len().to_string()),
    ];
    assert_eq!(headers, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let request = &server.received()[0];
    assert_eq!(request.text(), sent);
    assert!(request.start.ends_with("a?x=%20y&z HTTP/1.1"), "{}", request.start);
    let expected = [
        ("x-custom", "a,b"),
        ("mcp-session-id", "s"),
        ("mcp-protocol-version", "2025-06-18"),
        ("last-event-id", "7"),
        ("accept-encoding", "identity"),
    ];
    for (name, value) in expected {
        assert_eq!(request.header(name), Some(value), "{name}");
    }
    assert_eq!((request.header("x-hop"), request.header("host")), (None, Some(server.address.to_string().as_str())));
    assert_eq!(proxy.stop(), Some(0));
    assert_eq!(ends(&folder), [("OK".to_owned(), String::new())]);
}

#[test]
fn a_redirect_is_not_followed() {
    let server = HttpServer::start(|_, connection| {
        respond(connection, "302 Found", "location: http://127.0.0.1:9/other\r\n", b"");
    });
    let folder = GuardFolder::new();
    let proxy = GuardProxy::start(&folder, &server.url());
    let response = proxy.post("", &call(1, "x", &json!({})));
    assert_eq!((response.status(), response.header("location")), (302, Some("http://127.0.0.1:9/other")));
    assert_eq!(server.received().len(), 1);
}

#[test]
fn events_are_forwarded_as_they_come() {
    let (sender, receiver) = channel::<()>();
    let receiver = Mutex::new(receiver);
    let server = HttpServer::start(move |_, connection| {
        start_events(connection, "");
        for piece in ["event: mess", "age\ndata: {\"id\":1,", "\"result\":{}}\n\n", ": ping\n\n"] {
            write_chunk(connection, piece.as_bytes());
            // The client has this piece before the next one is sent.
            receiver.lock().unwrap().recv_timeout(WITHIN).unwrap();
        }
        write_chunk(connection, b"");
    });
    let folder = GuardFolder::new();
    let mut proxy = GuardProxy::start(&folder, &server.url());
    let mut connection = proxy.connect();
    connection.post("", call(1, "x", &json!({})).as_bytes());
    assert_eq!(connection.head().header("content-type"), Some("text/event-stream"));
    for piece in ["event: mess", "age\ndata: {\"id\":1,", "\"result\":{}}\n\n", ": ping\n\n"] {
        assert_eq!(connection.chunk().unwrap().unwrap(), piece.as_bytes());
        sender.send(()).unwrap();
    }
    assert_eq!(connection.chunk(), None);
    proxy.stop();
    assert_eq!(ends(&folder), [("OK".to_owned(), String::new())]);
}

#[test]
fn large_bodies_pass_in_both_directions() {
    let server = HttpServer::start(|request, connection| {
        respond(connection, "200 OK", "content-type: application/json\r\n", &request.body);
    });
    let folder = GuardFolder::new();
    let mut proxy = GuardProxy::start(&folder, &server.url());
    let text = "y".repeat(3 << 20);
    // The answer of this server is the request, with a result in it.
    let sent = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"x","arguments":{{"t":"{text}"}}}}}}"#
    );
    assert!(proxy.post("", &sent).text() == sent);
    proxy.stop();
    let start = &folder.events_of("tool_call_start")[0]["call"];
    assert_eq!((&start["bytes_in"], &start["preview"]["truncated"]), (&json!(sent.len()), &json!(true)));
    assert_eq!(start["preview"]["args_preview"], "[TRUNCATED]");
    assert!(start["args_stream_hash"].is_string());
}

#[test]
fn a_server_that_is_down_is_a_bad_gateway_with_a_json_rpc_error() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let folder = GuardFolder::new();
    let mut proxy = GuardProxy::start(&folder, &format!("http://user:hunter2@{free}/mcp"));
    let response = proxy.post("", &call(7, "x", &json!({})));
    assert_eq!((response.status(), response.header("content-type")), (502, Some("application/json")));
    assert_eq!((&response.json()["id"], &response.json()["error"]["code"]), (&json!(7), &json!(-32603)));
    proxy.stop();
    assert_eq!(ends(&folder), [("ERROR".to_owned(), "transport".to_owned())]);
    assert!(!format!("{:?} {}", folder.events(), response.text()).contains("hunter2"));
}

#[test]
fn proc_003_a_server_that_crashes_within_a_response_ends_the_call_and_the_connection() {
    let server = HttpServer::start(|_, connection| {
        start_events(connection, "");
        write_chunk(connection, b"data: {\"method\":\"notifications/progress\"}\n\n");
        connection.shutdown(Shutdown::Both).unwrap();
    });
    let folder = GuardFolder::new();
    let mut proxy = GuardProxy::start(&folder, &server.url());
    let mut connection = proxy.connect();
    connection.post("", call(1, "x", &json!({})).as_bytes());
    connection.head();
    assert_eq!(connection.chunk().unwrap().unwrap(), b"data: {\"method\":\"notifications/progress\"}\n\n");
    assert_eq!(connection.chunk(), Some(Err(())));
    proxy.stop();
    assert_eq!(ends(&folder), [("ERROR".to_owned(), "transport".to_owned())]);
    assert_eq!(names(&folder.events()).last(), Some(&"run_end"));
}

#[test]
fn a_client_that_goes_cancels_the_request_of_the_server() {
    let (sender, receiver) = channel();
    let sender = Mutex::new(sender);
    let server = HttpServer::start(move |_, connection| {
        start_events(connection, "");
        while write_chunk(connection, b": waiting\n\n") {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        sender.lock().unwrap().send(()).unwrap();
    });
    let folder = GuardFolder::new();
    let mut proxy = GuardProxy::start(&folder, &server.url());
    let mut connection = proxy.connect();
    connection.post("", call(1, "x", &json!({})).as_bytes());
    connection.head();
    drop(connection);
    receiver.recv_timeout(WITHIN).expect("the server sees that the client has gone");
    proxy.stop();
    assert_eq!(ends(&folder), [("CANCELLED".to_owned(), String::new())]);
}

#[test]
fn a_client_that_goes_before_the_response_cancels_the_request_too() {
    let (sender, receiver) = channel();
    let sender = Mutex::new(sender);
    let server = HttpServer::start(move |_, connection| {
        sender.lock().unwrap().send("called").unwrap();
        let mut byte = [0];
        // Ends when the proxy closes the connection.
        let _ = std::io::Read::read(connection, &mut byte);
        sender.lock().unwrap().send("gone").unwrap();
    });
    let folder = GuardFolder::new();
    let mut proxy = GuardProxy::start(&folder, &server.url());
    let mut connection = proxy.connect();
    connection.post("", call(1, "x", &json!({})).as_bytes());
    assert_eq!(receiver.recv_timeout(WITHIN), Ok("called"));
    drop(connection);
    assert_eq!(receiver.recv_timeout(WITHIN), Ok("gone"));
    proxy.stop();
    assert_eq!(ends(&folder), [("CANCELLED".to_owned(), String::new())]);
}

#[test]
fn the_end_of_the_proxy_ends_idle_streams_and_waits_for_calls() {
    let (sender, receiver) = channel::<()>();
    let receiver = Mutex::new(receiver);
    let server = HttpServer::start(move |request, connection| {
        if request.start.starts_with("GET") {
            start_events(connection, "");
            write_chunk(connection, b": hello\n\n");
            std::thread::sleep(WITHIN);
        }
        receiver.lock().unwrap().recv_timeout(WITHIN).unwrap();
        respond(connection, "200 OK", "content-type: application/json\r\n", br#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    });
    let folder = GuardFolder::new();
    let mut proxy = GuardProxy::start(&folder, &server.url());
    let mut stream = proxy.connect();
    stream.send(b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n");
    assert_eq!(stream.head().status(), 200);
    assert_eq!(stream.chunk().unwrap().unwrap(), b": hello\n\n");
    let mut connection = proxy.connect();
    connection.post("", call(1, "x", &json!({})).as_bytes());
    while server.received().len() < 2 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    proxy.signal(rustix::process::Signal::INT);
    assert_eq!(stream.chunk(), None);
    sender.send(()).unwrap();
    assert_eq!(connection.response().json()["result"], json!({}));
    assert_eq!(proxy.wait(), Some(0));
    let events = folder.events();
    assert_eq!(ends(&folder), [("OK".to_owned(), String::new())]);
    assert_eq!(
        (&events.last().unwrap()["type"], &events.last().unwrap()["run"]["status"]),
        (&json!("run_end"), &json!("SUCCEEDED"))
    );
}

#[test]
fn a_stream_that_breaks_is_resumed_with_its_last_event_id() {
    let server = HttpServer::start(|request, connection| {
        start_events(connection, "");
        if request.start.starts_with("GET") {
            write_chunk(connection, b"id: 8\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n");
        } else {
            write_chunk(connection, b"id: 7\nretry: 10\ndata:\n\n");
        }
        write_chunk(connection, b"");
    });
    let folder = GuardFolder::new();
    let mut proxy = GuardProxy::start(&folder, &server.url());
    let mut connection = proxy.connect();
    connection.post("mcp-session-id: s\r\n", call(1, "x", &json!({})).as_bytes());
    connection.response();
    assert_eq!(ends(&folder), [], "the call can still end on another stream");
    connection.send(b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nMcp-Session-Id: s\r\nLast-Event-ID: 7\r\n\r\n");
    assert!(connection.response().text().contains("\"id\":1"));
    assert_eq!(server.received()[1].header("last-event-id"), Some("7"));
    proxy.stop();
    assert_eq!(ends(&folder), [("OK".to_owned(), String::new())]);
}

#[test]
fn the_end_of_a_session_ends_its_calls() {
    let server = HttpServer::start(|request, connection| {
        if request.start.starts_with("DELETE") {
            return respond(connection, "204 No Content", "", b"");
        }
        start_events(connection, "");
        write_chunk(connection, b"id: 1\ndata:\n\n");
        write_chunk(connection, b"");
    });
    let folder = GuardFolder::new();
    let mut proxy = GuardProxy::start(&folder, &server.url());
    let mut connection = proxy.connect();
    connection.post("mcp-session-id: s\r\n", call(1, "x", &json!({})).as_bytes());
    connection.response();
    connection.send(b"DELETE /mcp HTTP/1.1\r\nHost: localhost\r\nMcp-Session-Id: s\r\n\r\n");
    assert_eq!(connection.response().status(), 204);
    proxy.stop();
    assert_eq!(ends(&folder), [("CANCELLED".to_owned(), String::new())]);
}

#[test]
fn a_connection_serves_several_requests() {
    let server = HttpServer::of_json(|request| json!({"jsonrpc": "2.0", "id": request["id"], "result": {}}));
    let folder = GuardFolder::new();
    let proxy = GuardProxy::start(&folder, &server.url());
    let mut connection = proxy.connect();
    for id in 0..3 {
        connection.post("", call(id, "x", &json!({})).as_bytes());
        assert_eq!(connection.response().json()["id"], id);
    }
    drop(proxy);
    assert!(connection.is_closed());
}
