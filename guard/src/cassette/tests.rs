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

fn request(recording: &Recording, id: &RequestId, method: &str, params: Option<&str>) {
    recording.request(id, method, params).unwrap();
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
        CassetteLookup::Answer(text) => serde_json::from_str(&text).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn equal_requests_get_the_recorded_answers_in_their_order() {
    let folder = Folder::new();
    let recording = folder.record(&[]);
    for (number, text) in [(1, "first"), (2, "second"), (3, "other")] {
        let args = if number == 3 { json!({"x": 2}) } else { json!({"b": 1, "a": 1.0}) };
        request(&recording, &id(number), "tools/call", Some(&call("echo", &args)));
        recording.answers(&read_responses(&json!({"id": number, "result": {"text": text}}).to_string())).unwrap();
    }
    drop(recording);
    let replay = folder.replay(OnMiss::Error);
    let params = r#"{"arguments":{"a":1,"b":1},"name":"echo"}"#;
    assert_eq!(answered(&replay, 8, "tools/call", Some(params))["result"]["text"], "first");
    let second = answered(&replay, 9, "tools/call", Some(params));
    assert_eq!((&second["result"]["text"], &second["id"]), (&json!("second"), &json!(9)));
    let CassetteLookup::Missing(error) = replay.request(&id(10), "tools/call", Some(params)) else { panic!() };
    assert!(error.contains("are used up"), "{error}");
}

#[test]
fn a_result_that_is_null_is_recorded() {
    let folder = Folder::new();
    let recording = folder.record(&[]);
    request(&recording, &id(1), "logging/setLevel", None);
    recording.answers(&read_responses(r#"{"id":1,"result":null}"#)).unwrap();
    drop(recording);
    let answer = answered(&folder.replay(OnMiss::Error), 2, "logging/setLevel", None);
    assert_eq!((answer.get("result"), answer.get("error")), (Some(&Value::Null), None));
}

#[test]
fn a_handshake_is_answered_whatever_the_client_says_of_itself() {
    let folder = Folder::new();
    let recording = folder.record(&[]);
    request(&recording, &id(0), "initialize", Some(r#"{"clientInfo":{"version":"1"}}"#));
    request(&recording, &id(1), "tools/list", None);
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
    request(&recording, &id(1), "tools/list", None);
    assert!(!recording.answers(&read_responses(r#"{"id":1,"result":{"tools":[{"name":"a"}]}}"#)).unwrap());
    request(&recording, &id(2), "tools/call", Some(&call("a", &json!({}))));
    recording.answers(&read_responses(r#"{"id":2,"result":{}}"#)).unwrap();
    request(&recording, &id(3), "tools/list", None);
    assert!(recording.answers(&read_responses(r#"{"id":3,"result":{"tools":[]}}"#)).unwrap(), "the tools have changed");
    drop(recording);
    let replay = folder.replay(OnMiss::Forward);
    assert!(replay.needs_server());
    assert_eq!(replay.request(&id(1), "tools/list", None), CassetteLookup::Forward);
    assert!(!replay.has_other_tools(&id(1), r#"{"tools":[{"name":"a"}]}"#));
    assert_eq!(replay.request(&id(2), "tools/list", None), CassetteLookup::Forward);
    assert!(replay.has_other_tools(&id(2), r#"{"tools":[{"name":"b"}]}"#));
    answered(&replay, 4, "tools/call", Some(r#"{"name":"a"}"#));
    assert_eq!(replay.request(&id(5), "tools/call", Some(r#"{"name":"a"}"#)), CassetteLookup::Forward);
}

#[test]
fn secrets_are_masked_and_calls_with_them_are_found_again() {
    let folder = Folder::new();
    let recording = folder.record(&["hunter2-hunter2"]);
    let params = call("login", &json!({"token": "hunter2-hunter2"}));
    request(&recording, &id(1), "tools/call", Some(&params));
    recording.answers(&read_responses(r#"{"id":1,"result":{"echo":"hunter2-hunter2"}}"#)).unwrap();
    drop(recording);
    let text = std::fs::read_to_string(folder.path()).unwrap();
    assert!(!text.contains("hunter2"), "{text}");
    let answer = answered(&folder.replay(OnMiss::Error), 2, "tools/call", Some(&params));
    assert_eq!(answer["result"]["echo"], "[redacted]");
}

#[test]
fn an_answer_with_a_secret_as_a_number_or_as_syntax_is_recorded_as_valid_json() {
    let folder = Folder::new();
    let recording = folder.record(&["1234567", "true", "\":{\"", "hunter2-hunter2"]);
    let params = r#"{"name":"a","arguments":{"pin":1234567}}"#;
    request(&recording, &id(1), "tools/call", Some(params));
    let result = r#"{"pin":1234567,"ok":true,"a":{"b":["\\hunter2-hunter2",1.50]},"id":"hunter2-hunter2"}"#;
    recording.answers(&read_responses(&format!(r#"{{"id":1,"result":{result}}}"#))).unwrap();
    drop(recording);
    let text = std::fs::read_to_string(folder.path()).unwrap();
    assert!(!text.contains("1234567") && !text.contains("hunter2"), "{text}");
    let answer = answered(&folder.replay(OnMiss::Error), 2, "tools/call", Some(params));
    let expected = json!({"pin": "[redacted]", "ok": true, "a": {"b": ["\\[redacted]", 1.5]}, "id": "[redacted]"});
    assert_eq!(answer["result"], expected);
}

#[test]
fn an_answer_that_cannot_be_recorded_does_not_hide_the_others() {
    let folder = Folder::new();
    let recording = folder.record(&[]);
    for number in [1, 2] {
        request(&recording, &id(number), "resources/read", Some(&json!({"uri": number}).to_string()));
    }
    let large = json!({"id": 1, "result": "x".repeat(MAX_MESSAGE_BYTES)});
    let batch = json!([large, {"id": 2, "result": {"text": "small"}}]).to_string();
    let error = recording.answers(&read_responses(&batch)).unwrap_err();
    assert!(matches!(error, RecordingError::Write { .. }), "{error}");
    drop(recording);
    let answer = answered(&folder.replay(OnMiss::Error), 2, "resources/read", Some(r#"{"uri":2}"#));
    assert_eq!(answer["result"]["text"], "small");
}

#[test]
fn requests_that_are_never_answered_are_forgotten() {
    let folder = Folder::new();
    let recording = folder.record(&[]);
    let params = json!({"text": "x".repeat(10 << 20)}).to_string();
    let forgotten: Vec<u64> =
        (1..=8).filter(|number| recording.request(&id(*number), "a/b", Some(&params)).is_err()).collect();
    assert_eq!(forgotten, [7, 8], "64 MiB wait");
    assert!(!recording.forget(&id(2)) && recording.forget(&id(3)));
    let errors = (10..2000).filter_map(|number| recording.request(&id(number), "c/d", None).err());
    let errors: Vec<String> = errors.map(|error| error.to_string()).collect();
    assert!((900..1000).contains(&errors.len()) && errors[0].contains("`a/b`"), "{errors:?}");
}

#[test]
fn a_recording_continues_a_cassette_of_the_same_server() {
    let folder = Folder::new();
    let echo = call("echo", &json!({}));
    for text in ["first", "second"] {
        let recording = folder.record(&[]);
        request(&recording, &id(1), "tools/call", Some(&echo));
        recording.answers(&read_responses(&json!({"id": 1, "result": text}).to_string())).unwrap();
    }
    let replay = folder.replay(OnMiss::Error);
    for text in ["first", "second"] {
        assert_eq!(answered(&replay, 1, "tools/call", Some(&echo))["result"], text);
    }
    let error = Recording::start(&folder.path(), "other", Redactor::new([]).unwrap()).unwrap_err();
    assert!(matches!(&error, RecordingError::OtherServer { server_name, .. } if server_name == "test"), "{error}");
}

#[test]
fn the_tools_of_the_last_recording_that_lists_them_are_compared() {
    let folder = Folder::new();
    for tools in [Some("a"), Some("b"), None] {
        let recording = folder.record(&[]);
        request(&recording, &id(1), "tools/list", None);
        if let Some(name) = tools {
            let answer = json!({"id": 1, "result": {"tools": [{"name": name}]}}).to_string();
            recording.answers(&read_responses(&answer)).unwrap();
        }
    }
    let replay = folder.replay(OnMiss::Forward);
    for (name, is_other) in [("a", true), ("b", false)] {
        assert_eq!(replay.request(&id(1), "tools/list", None), CassetteLookup::Forward);
        let tools = json!({"tools": [{"name": name}]}).to_string();
        assert_eq!(replay.has_other_tools(&id(1), &tools), is_other, "{name}");
    }
}

#[test]
fn a_recording_continues_after_an_interrupted_one() {
    let folder = Folder::new();
    drop(folder.record(&[]));
    let text = std::fs::read_to_string(folder.path()).unwrap() + "{\"method\":\"tools";
    write(&folder.path(), text.as_bytes(), Durability::Cached).unwrap();
    drop(folder.record(&[]));
    folder.replay(OnMiss::Error);
}

#[test]
fn a_file_that_is_no_cassette_stays_as_it_is() {
    let folder = Folder::new();
    for text in ["notes", "notes\n", "{\"schema_version\":\"cassette.v9\"}\n"] {
        write(&folder.path(), text.as_bytes(), Durability::Cached).unwrap();
        let error = Recording::start(&folder.path(), "test", Redactor::new([]).unwrap()).unwrap_err();
        assert!(matches!(error, RecordingError::NotCassette(_)), "{error}");
        assert_eq!(std::fs::read_to_string(folder.path()).unwrap(), text);
    }
    assert_eq!(std::fs::read_dir(folder.0.path()).unwrap().count(), 1);
}

#[test]
fn a_file_that_exists_becomes_private() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = Folder::new();
    for text in [None, Some(String::new())] {
        if let Some(text) = text {
            write(&folder.path(), text.as_bytes(), Durability::Cached).unwrap();
        }
        let set = |mode| std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(mode));
        let _ = set(0o644);
        drop(folder.record(&[]));
        assert_eq!(folder.path().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn a_miss_states_whether_the_tool_the_arguments_or_the_answers_are_missing() {
    let folder = Folder::new();
    let recording = folder.record(&[]);
    let echo = call("echo", &json!({"a": 1}));
    request(&recording, &id(1), "tools/call", Some(&echo));
    request(&recording, &id(2), "resources/read", Some(r#"{"uri":"a:b"}"#));
    recording.answers(&read_responses(r#"[{"id":1,"result":{}},{"id":2,"result":{}}]"#)).unwrap();
    drop(recording);
    let replay = folder.replay(OnMiss::Error);
    answered(&replay, 1, "tools/call", Some(&echo));
    let other = call("echo", &json!({"a": "hunter2"}));
    let unknown = call(&"x".repeat(200), &json!({}));
    for (method, params, expected) in [
        (
            "tools/call",
            Some(&*echo),
            "this call of the tool `echo`: all answers to calls of this tool with these arguments",
        ),
        ("tools/call", Some(&*other), "`echo`: it has calls of this tool only with other arguments"),
        ("tools/call", Some(&*unknown), "`: it has no calls of this tool"),
        ("tools/call", None, "this `tools/call` request: it has requests of this method only with other parameters"),
        ("resources/read", None, "this `resources/read` request: it has requests of this method only with other"),
        ("prompts/get", None, "this `prompts/get` request: it has no requests of this method"),
    ] {
        let CassetteLookup::Missing(error) = replay.request(&id(9), method, params) else { panic!() };
        assert!(error.contains(expected) && error.len() < 300 && !error.contains("hunter2"), "{error}");
    }
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
