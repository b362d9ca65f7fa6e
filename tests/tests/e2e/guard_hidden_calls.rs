//! Calls that are written so that a guard may take them for something else, and messages that must pass although they are unusual.

use std::fs::{self, File};
use std::process::Stdio;

use counterproof_store::write::{self, Durability};
use serde_json::{Value, json};

use crate::guard_kit::GuardFolder;
use crate::guard_proxy_kit::{GuardProxy, HttpServer};

const DENY: &str = "  - {rule_id: d, kind: deny, match: {tool_name: {glob: ['rm*']}}}\n";

/// Longer than what the guard inspects as a whole.
const LARGE: usize = 1_200_000;

fn call(tool: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"{tool}","arguments":{{}}}}}}"#)
}

/// What the server received of messages that come before a call that is allowed.
fn received(folder: &GuardFolder, messages: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut client = folder.start();
    for message in messages {
        client.send([message.as_ref(), b"\n"].concat());
    }
    client.send("{\"jsonrpc\":\"2.0\",\"id\":\"last\",\"method\":\"tools/call\",\"params\":{\"name\":\"echo\"}}\n");
    while let Some(line) = client.receive_line() {
        if serde_json::from_slice::<Value>(&line).is_ok_and(|answer| answer["id"] == "last") {
            break;
        }
    }
    client.close();
    fs::read(folder.sandbox.path("server.log")).unwrap()
}

fn contains(bytes: &[u8], text: &str) -> bool {
    String::from_utf8_lossy(bytes).contains(text)
}

#[test]
fn a_call_that_only_some_parsers_see_is_not_forwarded() {
    let padding = "x".repeat(LARGE);
    let rm = call("rm_all");
    let messages = [
        // Servers that end lines at a carriage return read three messages.
        format!("{{\"id\":1,\"method\":\"ping\",\"params\":{{\"x\":\r{rm}\r}}}}"),
        format!("{{\"id\":1,\"method\":\"ping\",\"params\":{{\"x\":\r{rm}\r,\"y\":\"{padding}\"}}}}"),
        format!("{{\"id\":1,\"method\":\"ping\"}}\r{rm}"),
        // Servers that read one value from the line, or ignore the case of keys.
        format!("[{rm}]\r{{\"x\":\"{padding}\"}}"),
        format!("[{rm}] {{\"x\":\"{padding}\"}}"),
        format!("[[{rm}]]"),
        r#"{"id":1,"method":"ping","Method":"tools/call","Params":{"name":"rm_all"}}"#.to_owned(),
        r#"{"id":1,"method":"tools/call","params":{"name":"echo","Name":"rm_all"}}"#.to_owned(),
        format!(r#"{{"id":1,"method":"ping","Method":"tools/call","Params":{{"name":"rm_all"}},"x":"{padding}"}}"#),
        r#"{"id":1,"method":"tools/call","params":{"arguments":{"x":"\ud83d"},"name":"echo","name":"rm_all"}}"#
            .to_owned(),
        r#"{"id":1,"method":"tools/call","params":{"name":"echo","argument\u017f":{"x":"rm_all"}}}"#.to_owned(),
    ];
    for message in &messages {
        let folder = GuardFolder::new().with_rules(DENY).with_server_arguments(&["--log", "server.log"]);
        let received = received(&folder, &[message]);
        let start: String = message.chars().take(120).collect();
        assert!(!contains(&received, "rm_all"), "{start}");
    }
}

#[test]
fn an_answer_to_questions_of_the_server_cannot_carry_another_call() {
    let folder = GuardFolder::new().with_rules(DENY).with_server_arguments(&["--log", "server.log"]);
    let ask = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}"#;
    let retry = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask","requestState":"state-1",
        "inputResponses":{},"Name":"rm_all","Arguments":{"x":1}}}"#;
    let received = received(&folder, &[ask.to_owned(), retry.replace('\n', "")]);
    assert!(!contains(&received, "rm_all"));
    let decisions = folder.events_of("tool_call_decision");
    assert_eq!(decisions[1]["decision"]["explain"]["reason_code"], "AMBIGUOUS_REQUEST");
}

#[test]
fn a_large_body_in_another_encoding_is_not_forwarded() {
    let server = HttpServer::of_json(|request| json!({"jsonrpc": "2.0", "id": request["id"], "result": {}}));
    let folder = GuardFolder::new().with_rules(DENY);
    let mut proxy = GuardProxy::start(&folder, &server.url());
    let text = call("rm_all").replace("{}", &format!("{{\"x\":\"{}\"}}", "x".repeat(LARGE)));
    let utf_16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let utf_32: Vec<u8> = text.chars().flat_map(|it| u32::from(it).to_le_bytes()).collect();
    let marked = ["\u{feff}".as_bytes(), text.as_bytes()].concat();
    for body in [utf_16, utf_32, marked] {
        let mut connection = proxy.connect();
        connection.post("", &body);
        assert_eq!(connection.response().status(), 400);
    }
    proxy.stop();
    assert!(server.received().is_empty());
}

#[test]
fn unusual_messages_pass_unchanged_where_the_policy_only_observes() {
    let deep = "[".repeat(200) + &"]".repeat(200);
    let padding = "x".repeat(LARGE);
    let messages = [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"x":"\ud83d"}}}"#
            .to_owned(),
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"x":1e999}}}"#.to_owned(),
        format!(
            r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"echo","arguments":{{"x":{deep}}}}}}}"#
        ),
        format!(r#"{{"jsonrpc":"2.0","id":4,"result":{{"Name":"a","Method":"b","x":"{padding}"}}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":5,"method":"resources/read","ID":7,"params":{{"uri":"{padding}"}}}}"#),
        "{\"jsonrpc\":\"2.0\",\r\"id\":6,\"method\":\"ping\"}".to_owned(),
    ];
    let folder = GuardFolder::new().with_server_arguments(&["--log", "server.log"]);
    let received = received(&folder, &messages);
    for message in &messages {
        let start: String = message.chars().take(120).collect();
        assert!(contains(&received, &format!("{message}\n")), "{start}");
    }
    let starts = folder.events_of("tool_call_start");
    assert_eq!(starts[0]["call"]["tool_name"], "echo", "a call that cannot be represented is recorded");
}

/// Runs a shim on a file, which is read in larger pieces than a pipe. Returns what the server received.
fn received_from_file(folder: &GuardFolder, input: &[u8]) -> Vec<u8> {
    let path = folder.sandbox.path("input.jsonl");
    write::write(&path, input, Durability::Cached).unwrap();
    let mut command = folder.command();
    let status = command.stdin(File::open(path).unwrap()).stdout(Stdio::null()).status().unwrap();
    assert!(status.success(), "{status}");
    fs::read(folder.sandbox.path("server.log")).unwrap()
}

fn notification(length: usize) -> String {
    format!("{{\"method\":\"notifications/example\",\"params\":{{\"x\":\"{}\"}}}}\n", "x".repeat(length))
}

#[test]
fn large_and_small_messages_stay_in_order() {
    let folder = GuardFolder::new().with_server_arguments(&["--log", "server.log"]);
    let input = [1_179_000, 700, 1_100_000, 10, 1_100_000].map(notification).concat();
    let received = received_from_file(&folder, input.as_bytes());
    let lengths = |bytes: &[u8]| bytes.split(|byte| *byte == b'\n').map(<[u8]>::len).collect::<Vec<_>>();
    assert_eq!(lengths(&received), lengths(input.as_bytes()));
}

#[test]
fn a_large_message_passes_whole_where_there_is_no_room_for_it() {
    let folder =
        GuardFolder::new().with_server_arguments(&["--log", "server.log"]).with_variable("TMPDIR", "/nonexistent");
    let input = notification(3_000_000) + &notification(10);
    assert!(received_from_file(&folder, input.as_bytes()) == input.as_bytes(), "the bytes differ");
}
