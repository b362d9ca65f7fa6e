//! Cassettes: recorded answers of a server, replayed without it.

use serde_json::{Value, json};

use crate::guard_kit::{GuardFolder, SERVER, text};

/// A session with a handshake, two equal calls, an error and a large result. Returns the answers.
fn talk(folder: &GuardFolder) -> Vec<Value> {
    let mut client = folder.start();
    let mut answers = vec![
        client.request("initialize", &json!({"protocolVersion": "2025-11-25"})),
        client.request("tools/list", &json!({})),
    ];
    for (tool, args) in [
        ("echo", json!({"a": 1})),
        ("echo", json!({"a": 1})),
        ("fail", json!({})),
        ("big", json!({"bytes": 1_100_000})),
        ("echo", json!({"text": "x".repeat(1_100_000)})),
    ] {
        answers.push(client.call(tool, &args));
    }
    assert!(client.close().0.success());
    answers
}

#[test]
fn a_replay_gives_the_recorded_answers_without_the_server() {
    let folder = GuardFolder::new();
    let recorded = talk(&folder.recording());
    let replaying = folder.replaying();
    let mut command = replaying.command_of(&["no-such-server"]);
    assert!(command.output().unwrap().status.success(), "the server is not started");
    assert_eq!(talk(&replaying), recorded);
    let ends = folder.events_of("tool_call_end");
    let statuses: Vec<_> = ends.iter().map(|end| end["status"].as_str().unwrap()).collect();
    assert_eq!(statuses[..5], statuses[5..], "the events of both runs agree");
}

#[cfg(unix)]
#[test]
fn only_its_owner_can_read_a_cassette() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = GuardFolder::new();
    folder.recording().start().close();
    let mode = folder.sandbox.path("cassette.jsonl").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_batch_is_replayed_as_an_array() {
    let folder = GuardFolder::new();
    talk(&folder.recording());
    let replaying = folder.replaying().with_rules("  - {rule_id: d, kind: deny, match: {tool_name: {glob: [push]}}}\n");
    let mut client = replaying.start();
    client.send(concat!(
        r#"[{"id":1,"method":"tools/list","params":{}},{"method":"notifications/x"},"#,
        r#"{"id":2,"method":"tools/call","params":{"name":"push"}},"#,
        r#"{"id":3,"method":"tools/call","params":{"name":"echo","arguments":{"a":1}}}]"#,
        "\n"
    ));
    let answers = client.receive();
    let mut ids: Vec<_> = answers.as_array().unwrap().iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3]);
    client.close();
}

#[test]
fn messages_that_are_too_large_for_a_cassette_are_reported_and_forwarded() {
    let folder = GuardFolder::new();
    let mut client = folder.recording().start();
    let answer = client.call("big", &json!({"bytes": 17 << 20}));
    assert_eq!(text(&answer).len(), 17 << 20);
    client.call("size", &json!({"text": "x".repeat(17 << 20)}));
    client.call("echo", &json!({"a": 1}));
    let (status, stderr) = client.close();
    assert!(status.success() && stderr.contains("larger than a cassette can hold"), "{stderr}");
    let codes: Vec<_> = folder.events_of("shim_health").iter().map(|event| event["health"]["code"].clone()).collect();
    assert_eq!(codes, ["cassette_failed", "cassette_failed"]);
    let mut client = folder.replaying().start();
    assert_eq!(text(&client.call("echo", &json!({"a": 1}))), "{\"a\":1}");
    client.close();
}

#[test]
fn a_policy_decides_about_replayed_calls_too() {
    let folder = GuardFolder::new();
    talk(&folder.recording());
    let replaying = folder.replaying().with_rules("  - {rule_id: d, kind: deny, match: {tool_name: {glob: [echo]}}}\n");
    let mut client = replaying.start();
    assert_eq!(client.call("echo", &json!({"a": 1}))["error"]["code"], -32081);
    client.close();
}

#[test]
fn a_call_that_is_not_in_the_cassette_is_an_error_or_goes_to_the_server() {
    let folder = GuardFolder::new();
    talk(&folder.recording());
    let replaying = folder.replaying();
    let mut client = replaying.start();
    let answer = client.call("echo", &json!({"a": 2}));
    assert!(answer["error"]["message"].as_str().unwrap().contains("cassette"), "{answer}");
    client.call("unknown", &json!({}));
    let (_, stderr) = client.close();
    let misses = "counterproof guard: the replay is incomplete: the cassette `cassette.jsonl` has no answer to 2 \
                  requests; the first is a call of the tool `echo`: it has calls of this tool only with other arguments;";
    assert!(stderr.starts_with(misses) && stderr.lines().count() == 1, "{stderr}");
    let health = folder.events_of("shim_health");
    assert_eq!((health.len(), &health[0]["health"]["code"]), (1, &json!("cassette_misses")));
    assert_eq!(folder.events().last().unwrap()["type"], "run_end");
    let forwarding = replaying.with_option("--on-miss", "forward");
    let mut client = forwarding.start();
    client.request("initialize", &json!({}));
    assert_eq!(text(&client.call("echo", &json!({"a": 1}))), "{\"a\":1}");
    assert_eq!(text(&client.call("echo", &json!({"a": 2}))), "{\"a\":2}");
    client.close();
}

#[test]
fn a_cassette_of_another_server_is_a_warning_at_the_start() {
    let folder = GuardFolder::new();
    talk(&folder.recording());
    let path = folder.sandbox.path("cassette.jsonl");
    let cassette =
        std::fs::read_to_string(&path).unwrap().replace("\"server_name\":\"test\"", "\"server_name\":\"git\"");
    let folder = folder.with_file("cassette.jsonl", &cassette);
    let replaying = folder.replaying();
    let mut client = replaying.start();
    assert_eq!(text(&client.call("echo", &json!({"a": 1}))), "{\"a\":1}", "it is used all the same");
    let (_, stderr) = client.close();
    let warning = "warning: the cassette `cassette.jsonl` is of the server `git`, and not of `test`; check `--replay` and \
                   `--server-name`\n";
    assert_eq!(stderr, warning);
}

#[test]
fn other_tools_than_the_recorded_ones_are_reported() {
    let folder = GuardFolder::new();
    talk(&folder.recording());
    let path = folder.sandbox.path("cassette.jsonl");
    let cassette = std::fs::read_to_string(&path).unwrap().replace("linear_create_issue", "linear_close_issue");
    let folder = folder.with_file("cassette.jsonl", &cassette);
    let replaying = folder.replaying().with_option("--on-miss", "forward");
    let mut client = replaying.start();
    client.request("tools/list", &json!({}));
    let (_, stderr) = client.close();
    assert!(stderr.contains("the list of tools has changed"), "{stderr}");
    assert_eq!(folder.events_of("shim_health")[0]["health"]["code"], "tools_changed");
}

#[test]
fn secrets_are_not_in_a_cassette() {
    let bindings = r#"[{"inject_as": "TOKEN", "secret_ref": "T"}]"#;
    let folder = GuardFolder::new()
        .with_file("secrets.json", bindings)
        .with_option("--secrets", "secrets.json")
        .with_variable("SUB_SECRET_T", "a-long-secret-value");
    let mut client = folder.recording().start();
    client.call("environment", &json!({"name": "TOKEN"}));
    client.call("echo", &json!({"text": "a-long-secret-value"}));
    client.close();
    let cassette = std::fs::read_to_string(folder.sandbox.path("cassette.jsonl")).unwrap();
    assert!(!cassette.contains("a-long-secret-value") && cassette.contains("[REDACTED]"), "{cassette}");
}

#[test]
fn an_answer_with_a_secret_of_digits_is_recorded_without_it() {
    let bindings = r#"[{"inject_as": "TOKEN", "secret_ref": "T"}]"#;
    let folder = GuardFolder::new()
        .with_file("secrets.json", bindings)
        .with_option("--secrets", "secrets.json")
        .with_variable("SUB_SECRET_T", "1100000");
    let mut client = folder.recording().start();
    let args = json!({"pin": 1_100_000});
    client.call("echo", &args);
    assert!(client.close().0.success());
    let cassette = std::fs::read_to_string(folder.sandbox.path("cassette.jsonl")).unwrap();
    assert!(!cassette.contains("1100000"), "{cassette}");
    let mut client = folder.replaying().start();
    assert_eq!(text(&client.call("echo", &args)), "{\"pin\":[REDACTED]}");
    client.close();
}

#[test]
fn a_server_that_a_client_starts_again_continues_its_cassette() {
    let folder = GuardFolder::new();
    let recording = folder.recording();
    for number in 1..=2 {
        let mut client = recording.start();
        client.call("echo", &json!({"a": 1}));
        client.call("echo", &json!({"run": number}));
        assert!(client.close().0.success());
    }
    let mut client = folder.replaying().start();
    for args in [json!({"a": 1}), json!({"a": 1}), json!({"run": 1}), json!({"run": 2})] {
        assert_eq!(text(&client.call("echo", &args)), args.to_string());
    }
    client.close();
}

#[test]
fn another_file_is_not_overwritten_and_a_damaged_cassette_is_refused() {
    let folder = GuardFolder::new().with_file("cassette.jsonl", "{\"schema_version\":\"x\"}\n");
    let output = folder.recording().command_of(&[SERVER]).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && stderr.contains("cassette.jsonl"), "{stderr}");
    assert_eq!(folder.events().len(), 0, "no run has started");
    let output = folder.replaying().command_of(&[SERVER]).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && stderr.contains("cassette.jsonl:1"), "{stderr}");
}
