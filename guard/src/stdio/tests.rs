//! Tests of both directions without processes.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use counterproof_ledger::event::CallStatus;
use counterproof_redaction::Redactor;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::mcp::PendingCalls;
use crate::session::tests::{DENY_PUSH, MemorySink, session};
use crate::session::{MAX_INSPECT_BYTES, Session};

#[derive(Clone, Default)]
struct Output(Arc<Mutex<Vec<u8>>>);

impl Output {
    fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }

    fn messages(&self) -> Vec<Value> {
        let bytes = self.bytes();
        bytes.split_inclusive(|byte| *byte == b'\n').map(|line| serde_json::from_slice(line).unwrap()).collect()
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A shim without processes.
struct Wire {
    session: Session,
    sink: Arc<MemorySink>,
    pending: PendingCalls,
    to_client: Output,
    client: ClientOutput,
    is_terminated: AtomicBool,
}

impl Wire {
    fn new(policy: Option<&str>) -> Self {
        let (session, sink) = session(policy, &[]);
        let to_client = Output::default();
        let client = ClientOutput::new(Box::new(to_client.clone()));
        Self {
            session,
            sink,
            pending: PendingCalls::default(),
            to_client,
            client,
            is_terminated: AtomicBool::new(false),
        }
    }

    /// Sends bytes of the client. Returns what reaches the server.
    fn client_sends(&self, bytes: &[u8]) -> Vec<u8> {
        let to_server = Output::default();
        let on_terminated = || self.is_terminated.store(true, Ordering::Relaxed);
        let pump = ClientPump {
            session: &self.session,
            pending: &self.pending,
            client: &self.client,
            cassette: None,
            on_terminated: &on_terminated,
        };
        assert!(matches!(pump.run(bytes, to_server.clone()), ClientEnd::Closed));
        to_server.bytes()
    }

    fn server_sends(&self, bytes: &[u8], secrets: Option<&Redactor>) {
        let pump = ServerPump {
            session: &self.session,
            pending: &self.pending,
            client: &self.client,
            secrets,
            cassette: None,
        };
        assert!(matches!(pump.run(bytes), ServerEnd::Closed));
    }
}

fn call(id: &Value, tool: &str, args: &Value) -> String {
    let params = json!({"name": tool, "arguments": args});
    format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
}

/// Lines as clients and servers send them, and invalid lines.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(vec![
        br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#.to_vec(),
        br#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"x","arguments":{"b":1,"a":2.50}}}"#
            .to_vec(),
        br#" { "id" : 1 , "result" : { "content" : [ ] } } "#.to_vec(),
        br#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}"#.to_vec(),
        br#"[{"id":1,"method":"ping"},{"id":2,"method":"tools/call","params":{"name":"x"}}]"#.to_vec(),
        br#"{"id":1,"error":{"code":-1,"message":"\u00e9"}}"#.to_vec(),
        b"{broken".to_vec(),
        b"\xff\xfe{}".to_vec(),
        b"PRI * HTTP/2.0".to_vec(),
        Vec::new(),
    ]);
    let end = prop::sample::select(vec![&b"\n"[..], b"\r\n", b" \n"]);
    (prop_oneof![known, prop::collection::vec(any::<u8>(), 0..50)], end).prop_map(|(line, end)| [&line, end].concat())
}

proptest! {
    #[test]
    fn the_same_lines_come_out_in_the_same_order(lines in prop::collection::vec(line(), 0..12), cut in 0_usize..30) {
        let mut bytes = lines.concat();
        bytes.truncate(bytes.len().saturating_sub(cut));
        let wire = Wire::new(None);
        let to_server = wire.client_sends(&bytes);
        prop_assert!(to_server == bytes, "{:?}", String::from_utf8_lossy(&to_server));
        wire.server_sends(&bytes, None);
        prop_assert!(wire.to_client.bytes() == bytes);
    }
}

#[test]
fn a_denied_call_is_answered_and_not_forwarded() {
    let wire = Wire::new(Some(DENY_PUSH));
    let lines =
        [call(&json!(1), "status", &json!({})), call(&json!("x"), "push", &json!({})), "{\"method\":\"n\"}\n".into()];
    assert_eq!(wire.client_sends(lines.concat().as_bytes()), [&*lines[0], &*lines[2]].concat().as_bytes());
    let answer = &wire.to_client.messages()[0];
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("x"), &json!(-32081)));
    assert_eq!(answer["error"]["data"]["subluminal"]["rule_id"], "no-push");
    assert_eq!(wire.sink.ends()[0].bytes_out, wire.to_client.bytes().len() as u64);
}

#[test]
fn a_stateless_call_is_denied_with_a_tool_result() {
    let wire = Wire::new(Some(DENY_PUSH));
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    let params = json!({"name": "push", "_meta": meta});
    let line = format!("{}\n", json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}));
    assert_eq!(wire.client_sends(line.as_bytes()), b"");
    let result = &wire.to_client.messages()[0]["result"];
    assert_eq!((&result["isError"], &result["resultType"]), (&json!(true), &json!("complete")));
    assert_eq!(result["_meta"]["subluminal"]["action"], "BLOCK");
}

#[test]
fn the_rest_of_a_batch_is_forwarded_as_it_came() {
    let wire = Wire::new(Some(DENY_PUSH));
    let kept = r#"{"id": 1, "method":"ping"}"#;
    let batch = format!("[{kept},{},{{\"method\":\"n\"}}]\n", call(&json!(2), "push", &json!({})).trim());
    let expected = format!("[{kept},{{\"method\":\"n\"}}]\n");
    assert_eq!(String::from_utf8(wire.client_sends(batch.as_bytes())).unwrap(), expected);
    let answer = &wire.to_client.messages()[0];
    assert_eq!((answer.as_array().unwrap().len(), &answer[0]["id"]), (1, &json!(2)));
}

#[test]
fn a_refused_call_without_an_id_has_no_answer_and_no_bytes_of_one() {
    let wire = Wire::new(Some(DENY_PUSH));
    let without_id = r#"{"method":"tools/call","params":{"name":"push"}}"#;
    let batch = format!("[{without_id},{}]\n", call(&json!(2), "push", &json!({})).trim());
    assert_eq!(wire.client_sends(batch.as_bytes()), b"");
    assert_eq!(wire.to_client.messages()[0].as_array().unwrap().len(), 1);
    let bytes: Vec<u64> = wire.sink.ends().iter().map(|end| end.bytes_out).collect();
    assert_eq!((bytes.len(), bytes[0]), (2, 0));
    assert!(bytes[1] > 50, "{bytes:?}");
}

#[test]
fn large_calls_are_held_until_they_are_decided() {
    for (tool, is_forwarded) in [("status", true), ("push", false), ("wipe", false)] {
        let wire = Wire::new(Some(DENY_PUSH));
        let text = "x".repeat(3 * MAX_INSPECT_BYTES);
        // The name comes after the arguments.
        let line =
            format!(r#"{{"id":1,"params":{{"arguments":{{"text":"{text}"}},"name":"{tool}"}},"method":"tools/call"}}"#);
        let line = format!("{line}\n{}", call(&json!(2), "after", &json!({})));
        let to_server = wire.client_sends(line.as_bytes());
        if is_forwarded {
            assert!(to_server == line.as_bytes(), "{tool}");
        } else {
            assert!(to_server.len() < 1000, "{tool}");
            assert_eq!(wire.to_client.messages()[0]["id"], 1);
        }
        assert_eq!(wire.is_terminated.load(Ordering::Relaxed), tool == "wipe");
    }
}

#[test]
fn large_results_are_forwarded_and_recorded() {
    let wire = Wire::new(None);
    wire.client_sends(call(&json!(1), "read", &json!({})).as_bytes());
    let line =
        format!("{{\"id\":1,\"result\":{{\"content\":[{{\"text\":\"{}\"}}]}}}}\n", "x".repeat(3 * MAX_INSPECT_BYTES));
    wire.server_sends(line.as_bytes(), None);
    assert!(wire.to_client.bytes() == line.as_bytes());
    let end = &wire.sink.ends()[0];
    assert_eq!((end.status, end.bytes_out, end.preview.truncated), (CallStatus::Ok, line.len() as u64, true));
    assert!(end.result_stream_hash.is_some());
}

#[test]
fn a_request_of_the_server_is_no_answer_to_a_call_with_the_same_id() {
    let wire = Wire::new(None);
    wire.client_sends(call(&json!(1), "read", &json!({})).as_bytes());
    wire.server_sends(b"{\"id\":1,\"method\":\"sampling/createMessage\"}\n", None);
    assert_eq!(wire.sink.ends().len(), 0);
    wire.server_sends(b"{\"id\":1,\"result\":{}}\n", None);
    assert_eq!(wire.sink.ends().len(), 1);
}

#[test]
fn a_cancelled_call_ends_and_its_late_answer_is_forwarded() {
    let wire = Wire::new(None);
    let cancel = "{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}\n";
    let sent = format!("{}{cancel}", call(&json!(1), "read", &json!({})));
    assert_eq!(wire.client_sends(sent.as_bytes()), sent.as_bytes());
    assert_eq!(wire.sink.ends()[0].status, CallStatus::Cancelled);
    wire.server_sends(b"{\"id\":1,\"result\":{}}\n", None);
    assert_eq!((wire.sink.ends().len(), wire.to_client.messages().len()), (1, 1));
}

#[test]
fn messages_that_cannot_be_inspected_are_refused_where_the_policy_fails_closed() {
    let closed = format!("{DENY_PUSH}defaults: {{decision_on_error: BLOCK}}\n");
    let open = format!("{DENY_PUSH}defaults: {{decision_on_error: ALLOW}}\n");
    let opaque = [b"{\"id\":1,NaN}\n".to_vec(), b"PRI * HTTP/2.0\r\n".to_vec(), b"[".repeat(2 * MAX_INSPECT_BYTES)];
    for line in &opaque {
        assert!(Wire::new(None).client_sends(line) == *line);
        assert!(Wire::new(Some(&open)).client_sends(line) == *line);
        let wire = Wire::new(Some(&closed));
        assert_eq!(wire.client_sends(line), b"");
        assert_eq!(wire.to_client.messages()[0]["error"]["code"], -32700);
    }
}

#[test]
fn injected_secrets_are_masked_in_what_the_client_receives() {
    let secrets = Redactor::of_values(["hunter2-hunter2"]).unwrap();
    let long = format!("{{\"x\":\"{}hunter2-hunter2\"}}\n", "x".repeat(2 * MAX_INSPECT_BYTES));
    for line in ["{\"text\":\"hunter2-hunter2\"}\n", "not json hunter2-hunter2 \n", &long] {
        let wire = Wire::new(None);
        wire.server_sends(line.as_bytes(), Some(&secrets));
        let received = String::from_utf8(wire.to_client.bytes()).unwrap();
        assert!(!received.contains("hunter2") && received.ends_with('\n'), "{}", &received[received.len() - 40..]);
    }
}
