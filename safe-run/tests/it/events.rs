//! The events as JSON lines.

use std::fs;
use std::process::{Command, Stdio};

use counterproof_safe_run::EVENT_SCHEMA_SOURCE;
use rustix::process::Signal;
use serde_json::{Value, json};

#[cfg(target_os = "linux")]
use crate::kit::Finished;
use crate::kit::Sandbox;

fn events(sandbox: &Sandbox) -> Vec<Value> {
    let text = fs::read_to_string(sandbox.path("events.jsonl")).unwrap();
    let schema: Value = serde_json::from_str(EVENT_SCHEMA_SOURCE).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for event in &events {
        assert!(validator.is_valid(event), "{event}");
    }
    events
}

#[test]
fn the_events_equal_those_of_the_ledger() {
    let sandbox = Sandbox::new();
    let script =
        "printf 'a\\r\\nb \"\\\\ \\t\\001\\n'; sleep 0.2; printf '\\377\\n' >&2; sleep 0.2; printf 'ä'; exit 3";
    let finished = sandbox.run(["--events", "events.jsonl", "sh", "-c", script]);
    assert_eq!(finished.code, Some(3));
    let events = events(&sandbox);
    let ledger = sandbox.ledger();
    assert_eq!(events.len(), ledger.len());
    for (event, line) in events.iter().zip(&ledger) {
        let prefix = if event["encoding"] == "base64" { "base64:" } else { "" };
        let text = event["text"].as_str().unwrap();
        let stream = event["stream"].as_str().unwrap();
        assert_eq!(line, &format!("[SEQ={}][{stream}] {prefix}{text}", event["seq"]));
    }
    let ends: Vec<&Value> = events[1..5].iter().map(|event| &event["line_end"]).collect();
    assert_eq!(ends, [&json!("crlf"), &Value::Null, &Value::Null, &json!("none")]);
    assert_eq!(events[0]["args"], json!(["sh", "-c", script]));
    assert_eq!(events[5]["exit_code"], 3);
    let times: Vec<u64> = events.iter().map(|event| event["at_us"].as_u64().unwrap()).collect();
    assert!(times.is_sorted() && times[3] - times[2] > 50_000, "{times:?}");
}

#[test]
fn events_are_written_after_success_too() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.run(["--events", "events.jsonl", "true"]).code, Some(0));
    assert_eq!(events(&sandbox).len(), 2);
    assert!(!sandbox.path(".agent").exists());
}

#[test]
fn the_last_event_has_the_signal_and_the_number_of_processes_left_behind() {
    let sandbox = Sandbox::new();
    let finished = sandbox.run([
        "--events",
        "events.jsonl",
        "sh",
        "-c",
        "setsid sleep 600 >/dev/null 2>&1 & sleep 0.2; kill -TERM $$",
    ]);
    assert_eq!(finished.code, Some(143));
    let events = events(&sandbox);
    let last = events.last().unwrap();
    assert_eq!((&last["exit_code"], &last["signal"], &last["left_behind"]), (&json!(143), &json!(15), &json!(1)));
}

#[test]
fn an_existing_file_is_not_overwritten_and_prevents_the_run() {
    let sandbox = Sandbox::new();
    sandbox.put("events.jsonl", "mine");
    let finished = sandbox.run(["--events", "events.jsonl", "touch", "ran"]);
    assert_eq!(finished.code, Some(125));
    let expected = "safe-run: the events file `events.jsonl` already exists and is not overwritten\n  \
        hint: remove it or choose another name\n";
    assert_eq!(finished.stderr, expected);
    assert_eq!(fs::read_to_string(sandbox.path("events.jsonl")).unwrap(), "mine");
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn an_empty_file_from_a_killed_safe_run_is_reported_as_such() {
    let sandbox = Sandbox::new();
    let running = sandbox.start(["--events", "events.jsonl", "sh", "-c", "echo ready > ready; sleep 600"]);
    sandbox.wait_for("ready");
    running.send(Signal::KILL);
    running.finish();
    let finished = sandbox.run(["--events", "events.jsonl", "true"]);
    assert_eq!(finished.code, Some(125));
    assert!(
        finished.stderr.contains("the events file `events.jsonl` already exists and is empty: another safe-run"),
        "{finished:?}"
    );
}

#[test]
#[cfg(target_os = "linux")]
fn an_incomplete_events_file_is_reported_with_its_name() {
    let sandbox = Sandbox::new();
    // A file size limit simulates a full disk; the log exceeds it too.
    let script = "trap '' XFSZ; ulimit -f 8; exec \"$0\" --events events.jsonl sh -c 'yes | head -n 50000'";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_safe-run")]).current_dir(sandbox.path(""));
    let finished: Finished = command.stdin(Stdio::null()).output().unwrap().into();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let expected = "safe-run: failed to write the events: File too large (os error 27)\n  \
        hint: `events.jsonl` is incomplete; remove it before the next run\n";
    assert_eq!(finished.stderr, expected);
}

#[test]
fn a_command_that_does_not_start_leaves_no_new_events_file() {
    let sandbox = Sandbox::new().with_pipe("pipe");
    for _ in 0..2 {
        assert_eq!(sandbox.run(["--events", "events.jsonl", "no-such-command-anywhere"]).code, Some(127));
        assert!(!sandbox.path("events.jsonl").exists());
    }
    let mut reader = Command::new("cat").arg(sandbox.path("pipe")).stdout(Stdio::null()).spawn().unwrap();
    assert_eq!(sandbox.run(["--events", "pipe", "no-such-command-anywhere"]).code, Some(127));
    assert!(reader.wait().unwrap().success() && sandbox.path("pipe").exists(), "an existing pipe is not removed");
}
