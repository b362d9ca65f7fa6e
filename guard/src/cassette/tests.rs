//! Tests of recording and replay.

use camino::Utf8Path;
use counterproof_redaction::Redactor;
use counterproof_store::write::{Durability, write};
use serde_json::{Value, json};

use super::*;
use crate::mcp::{RequestId, read_responses};

fn id(number: u64) -> RequestId {
    RequestId::from_value(&json!(number)).unwrap()
}

fn call(tool: &str, args: &Value) -> String {
    json!({"name": tool, "arguments": args, "_meta": {"progressToken": 7}}).to_string()
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> camino::Utf8PathBuf {
        Utf8Path::from_path(self.0.path()).unwrap().join("cassette.jsonl")
    }

    fn record(&self, secrets: &[&str]) -> Recording {
        Recording::start(&self.path(), "test", Redactor::new(secrets.iter().copied()).unwrap()).unwrap()
    }

    fn replay(&self, on_miss: OnMiss) -> Replay {
        Replay::read(&self.path(), on_miss).unwrap()
    }
}

fn answered(replay: &Replay, number: u64, method: &str, params: Option<&str>) -> Value {
    match replay.request(&id(number), method, params) {
        Replayed::Answer(text) => serde_json::from_str(&text).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn equal_requests_get_the_recorded_answers_in_their_order() {
    let folder = Folder::new();
    let recording = folder.record(&[]);
    for (number, text) in [(1, "first"), (2, "second"), (3, "other")] {
        let args = if number == 3 { json!({"x": 2}) } else { json!({"b": 1, "a": 1.0}) };
        recording.request(&id(number), "tools/call", Some(&call("echo", &args)));
        recording.answers(&read_responses(&json!({"id": number, "result": {"text": text}}).to_string())).unwrap();
    }
    drop(recording);
    let replay = folder.replay(OnMiss::Error);
    let params = r#"{"arguments":{"a":1,"b":1},"name":"echo"}"#;
    assert_eq!(answered(&replay, 8, "tools/call", Some(params))["result"]["text"], "first");
    let second = answered(&replay, 9, "tools/call", Some(params));
    assert_eq!((&second["result"]["text"], &second["id"]), (&json!("second"), &json!(9)));
    let Replayed::Missing(error) = replay.request(&id(10), "tools/call", Some(params)) else { panic!() };
    assert!(error.contains("no answer to this `tools/call` request"), "{error}");
}

#[test]
fn a_result_that_is_null_is_recorded() {
    let folder = Folder::new();
    let recording = folder.record(&[]);
    recording.request(&id(1), "logging/setLevel", None);
    recording.answers(&read_responses(r#"{"id":1,"result":null}"#)).unwrap();
    drop(recording);
    let answer = answered(&folder.replay(OnMiss::Error), 2, "logging/setLevel", None);
    assert_eq!((answer.get("result"), answer.get("error")), (Some(&Value::Null), None));
}

#[test]
fn a_handshake_is_answered_whatever_the_client_says_of_itself() {
    let folder = Folder::new();
    let recording = folder.record(&[]);
    recording.request(&id(0), "initialize", Some(r#"{"clientInfo":{"version":"1"}}"#));
    recording.request(&id(1), "tools/list", None);
    let batch = r#"[{"id":0,"result":{"serverInfo":1.50}},{"id":1,"error":{"code":-1}},{"id":5,"result":{}}]"#;
    recording.answers(&read_responses(batch)).unwrap();
    recording.answers(&read_responses("not json")).unwrap();
    drop(recording);
    let replay = folder.replay(OnMiss::Error);
    for _ in 0..2 {
        let params = Some(r#"{"clientInfo":{"version":"2"}}"#);
        assert_eq!(answered(&replay, 1, "initialize", params)["result"]["serverInfo"], 1.5);
        assert_eq!(answered(&replay, 2, "tools/list", Some("{}"))["error"]["code"], -1);
        assert_eq!(answered(&replay, 3, "ping", None)["result"], json!({}));
    }
}

#[test]
fn with_a_server_only_recorded_calls_are_answered() {
    let folder = Folder::new();
    let recording = folder.record(&[]);
    recording.request(&id(1), "tools/list", None);
    assert!(!recording.answers(&read_responses(r#"{"id":1,"result":{"tools":[{"name":"a"}]}}"#)).unwrap());
    recording.request(&id(2), "tools/call", Some(&call("a", &json!({}))));
    recording.answers(&read_responses(r#"{"id":2,"result":{}}"#)).unwrap();
    recording.request(&id(3), "tools/list", None);
    assert!(recording.answers(&read_responses(r#"{"id":3,"result":{"tools":[]}}"#)).unwrap(), "the tools have changed");
    drop(recording);
    let replay = folder.replay(OnMiss::Forward);
    assert!(replay.needs_server());
    assert_eq!(replay.request(&id(1), "tools/list", None), Replayed::Forward);
    assert!(!replay.has_other_tools(&id(1), r#"{"tools":[{"name":"a"}]}"#));
    assert_eq!(replay.request(&id(2), "tools/list", None), Replayed::Forward);
    assert!(replay.has_other_tools(&id(2), r#"{"tools":[{"name":"b"}]}"#));
    answered(&replay, 4, "tools/call", Some(r#"{"name":"a"}"#));
    assert_eq!(replay.request(&id(5), "tools/call", Some(r#"{"name":"a"}"#)), Replayed::Forward);
}

#[test]
fn secrets_are_masked_and_calls_with_them_are_found_again() {
    let folder = Folder::new();
    let recording = folder.record(&["hunter2-hunter2"]);
    let params = call("login", &json!({"token": "hunter2-hunter2"}));
    recording.request(&id(1), "tools/call", Some(&params));
    recording.answers(&read_responses(r#"{"id":1,"result":{"echo":"hunter2-hunter2"}}"#)).unwrap();
    drop(recording);
    let text = std::fs::read_to_string(folder.path()).unwrap();
    assert!(!text.contains("hunter2"), "{text}");
    let answer = answered(&folder.replay(OnMiss::Error), 2, "tools/call", Some(&params));
    assert_eq!(answer["result"]["echo"], "[redacted]");
}

#[test]
fn an_existing_cassette_is_not_overwritten() {
    let folder = Folder::new();
    drop(folder.record(&[]));
    let error = Recording::start(&folder.path(), "test", Redactor::new([]).unwrap()).unwrap_err();
    assert!(matches!(error, RecordingError::Exists(_)), "{error}");
}

#[test]
fn errors_name_the_file_and_the_line() {
    let folder = Folder::new();
    let header = r#"{"schema_version":"cassette.v1","server_name":"a","recorded_at":"2026-01-31T12:00:00Z"}"#;
    for (text, expected) in [
        (String::new(), ":1: the file is empty"),
        (format!("{header}\n{{}}\n"), ":2: missing field"),
        (format!("{header}\n{{\"method\""), ":2: the line is cut off"),
        (header.replace("v1", "v9") + "\n", ":1: `schema_version` is `cassette.v9`"),
    ] {
        write(&folder.path(), text.as_bytes(), Durability::Cached).unwrap();
        let error = Replay::read(&folder.path(), OnMiss::Error).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
