//! Injected secrets: the server receives them, and nothing else does.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use counterproof_tests::files_below;
use serde_json::json;

use crate::guard_kit::{GuardFolder, text};

const SECRET: &str = "tok\"en/with+specials=1234";

const BINDINGS: &str =
    r#"{"server_name": "test", "secret_bindings": [{"inject_as": "TOKEN", "secret_ref": "MY_TOKEN"}]}"#;

fn folder(rules: &str) -> GuardFolder {
    GuardFolder::new()
        .with_rules(rules)
        .with_file("secrets.json", BINDINGS)
        .with_option("--secrets", "secrets.json")
        .with_variable("SUB_SECRET_MY_TOKEN", SECRET)
}

/// The forms in which a secret leaves a program: as it is, and encoded once or twice.
fn forms() -> [String; 6] {
    let written = |form: fn(u8) -> String| SECRET.bytes().map(form).collect::<Vec<_>>().concat();
    let (hex, percent) = (written(|byte| format!("{byte:02x}")), written(|byte| format!("%{byte:02X}")));
    let in_json = |text: &str| serde_json::to_string(text).unwrap().trim_matches('"').to_owned();
    let json = in_json(SECRET);
    [SECRET.to_owned(), hex, percent, in_json(&json), json, STANDARD.encode(SECRET)]
}

fn contains(bytes: &[u8], form: &str) -> bool {
    bytes.windows(form.len()).any(|window| window == form.as_bytes())
}

/// Fails if bytes contain the secret in any common form.
#[track_caller]
fn assert_clean(name: &str, bytes: &[u8]) {
    for form in forms() {
        assert!(!contains(bytes, &form), "{name} contains {form:?}");
    }
}

/// Checks every byte that left the shim: what the client received, standard error, and every file.
#[track_caller]
fn assert_all_clean(folder: &GuardFolder, received: &[Vec<u8>], stderr: &str) {
    for line in received {
        assert_clean("the output", line);
    }
    assert_clean("standard error", stderr.as_bytes());
    let files = files_below(folder.sandbox.root());
    assert!(files.iter().any(|(path, _)| path.ends_with("state/counterproof/ledger.db")), "the ledger is checked");
    for (path, bytes) in &files {
        assert_clean(path.as_str(), bytes);
    }
}

#[test]
fn sec_001_the_server_uses_a_secret_that_the_agent_never_sees() {
    let folder = folder("  []\n");
    let mut client = folder.start();
    assert_eq!(text(&client.call("authorized", &json!({"name": "TOKEN"}))), "authorized");
    assert_eq!(text(&client.call("environment", &json!({"name": "SUB_SECRET_MY_TOKEN"}))), "not set");
    let (_, stderr) = client.close();
    assert_all_clean(&folder, &[], &stderr);
}

#[test]
fn a_server_that_prints_its_secrets_does_not_reveal_them() {
    let folder = folder("  []\n");
    let mut client = folder.start();
    client.send_request("tools/call", &json!({"name": "environment", "arguments": {"name": "TOKEN"}}));
    let mut received = vec![client.receive_line().unwrap()];
    // An agent that knows the secret from elsewhere sends it.
    for args in [json!({"text": SECRET}), json!({"text": STANDARD.encode(SECRET)}), json!({(SECRET): 1})] {
        client.send_request("tools/call", &json!({"name": "complain", "arguments": args}));
        received.push(client.receive_line().unwrap());
        client.send_request("tools/call", &json!({"name": "echo", "arguments": args}));
        received.push(client.receive_line().unwrap());
    }
    let (_, stderr) = client.close();
    assert!(stderr.contains("[REDACTED]"), "{stderr}");
    assert_all_clean(&folder, &received, &stderr);
}

/// The control of the test above: without the binding, the same search finds each form in the answer and in the ledger.
#[test]
fn a_value_that_is_not_bound_is_revealed_and_found() {
    // The server encodes what it echoes twice, so a form with a backslash becomes one that the search does not know.
    for form in forms().into_iter().filter(|form| !form.contains('\\')) {
        let folder = GuardFolder::new();
        let mut client = folder.start();
        client.send_request("tools/call", &json!({"name": "echo", "arguments": {"text": form}}));
        let line = client.receive_line().unwrap();
        client.close();
        assert!(forms().iter().any(|form| contains(&line, form)), "the search does not find {form:?} in the output");
        let files = files_below(folder.sandbox.root());
        let in_files = files.iter().any(|(_, bytes)| forms().iter().any(|form| contains(bytes, form)));
        assert!(in_files, "no file contains {form:?}");
    }
}

#[test]
fn values_with_line_ends_are_masked_as_a_server_trims_and_splits_them() {
    let lines = ["MIIEvQIBADANBgkqhkiG9w0B", "ggSjAgEAAoIBAQC7VJTUt9Us"];
    for (value, echoes) in [
        ("abcDEF123456\n".to_owned(), vec!["abcDEF123456".to_owned()]),
        (format!("{}\n", lines.join("\n")), vec![lines.join("\n"), lines.join("\r\n"), lines[1].to_owned()]),
    ] {
        let folder = folder("  []\n").with_variable("SUB_SECRET_MY_TOKEN", &value);
        let mut client = folder.start();
        for echo in echoes {
            let result = client.call("echo", &json!({"text": echo}));
            let answer = text(&result);
            assert!(answer.contains("[REDACTED]") && !answer.contains(&echo), "{answer}");
        }
        client.close();
        let events = folder.event_lines().concat();
        for hidden in [lines[0], lines[1], "abcDEF123456"] {
            assert!(!events.contains(hidden), "{events}");
        }
    }
}

#[test]
fn a_secret_that_is_an_ordinary_word_or_number_does_not_break_messages() {
    for value in ["result", "text", "1234"] {
        let folder = folder("  []\n").with_variable("SUB_SECRET_MY_TOKEN", value);
        let mut client = folder.start();
        for number in [1234, 1235] {
            let result = client.call("echo", &json!({"note": format!("a {value}"), "number": number}));
            let answer = result.to_string();
            assert!(answer.contains("a [REDACTED]") && !answer.contains(&format!("a {value}")), "{answer}");
        }
        client.close();
    }
}

#[test]
fn err_004_refusals_contain_no_secret() {
    let folder = folder("  - {rule_id: d, kind: deny, match: {tool_name: {glob: [echo]}}}\n");
    let mut client = folder.start();
    client.send_request("tools/call", &json!({"name": "echo", "arguments": {"token": SECRET}}));
    let line = client.receive_line().unwrap();
    assert!(String::from_utf8_lossy(&line).contains("-32081"));
    let (_, stderr) = client.close();
    assert_all_clean(&folder, &[line], &stderr);
}

#[test]
fn previews_contain_no_keys_of_known_formats() {
    let folder = GuardFolder::new();
    let mut client = folder.start();
    client.call("echo", &json!({"a": "sk-secret-key-12345", "b": "ghp_github_token_abc", "c": "password123"}));
    client.close();
    let events = folder.event_lines().concat();
    for secret in ["sk-secret-key-12345", "ghp_github_token_abc", "password123"] {
        assert!(!events.contains(secret), "{events}");
    }
}

#[test]
fn sec_002_the_injection_of_a_secret_is_recorded_without_its_value() {
    let folder = folder("  []\n");
    folder.start().close();
    let events = folder.events_of("secret_injection");
    let expected = json!({"inject_as": "TOKEN", "secret_ref": "MY_TOKEN", "source": "env", "success": true});
    assert_eq!(events[0]["secret_injection"], expected);
}

#[test]
fn a_server_whose_secret_is_missing_is_not_started() {
    let folder = GuardFolder::new().with_file("secrets.json", BINDINGS).with_option("--secrets", "secrets.json");
    let marker = folder.sandbox.path("started");
    let output = folder.command_of(&["touch", marker.as_str()]).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("MY_TOKEN") && !marker.exists(), "{stderr}");
    assert_eq!(folder.events_of("secret_injection")[0]["secret_injection"]["success"], false);
    assert_eq!(folder.events().last().unwrap()["run"]["status"], "FAILED");
}
