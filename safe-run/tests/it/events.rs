//! The ledger as JSON lines.

use std::fs;
use std::process::{Command, Stdio};

use counterproof_safe_run::EVENT_SCHEMA_SOURCE;
use rustix::process::Signal;
use serde_json::{Value, json};

#[cfg(target_os = "linux")]
use crate::kit::Finished;
use crate::kit::Place;

fn events(place: &Place) -> Vec<Value> {
    let text = fs::read_to_string(place.path("events.jsonl")).unwrap();
    let schema: Value = serde_json::from_str(EVENT_SCHEMA_SOURCE).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for event in &events {
        assert!(validator.is_valid(event), "{event}");
    }
    events
}

#[test]
fn the_events_are_those_of_the_ledger() {
    let place = Place::new();
    let script =
        "printf 'a\\r\\nb \"\\\\ \\t\\001\\n'; sleep 0.2; printf '\\377\\n' >&2; sleep 0.2; printf 'ä'; exit 3";
    let finished = place.run(["--events", "events.jsonl", "sh", "-c", script]);
    assert_eq!(finished.code, Some(3));
    let events = events(&place);
    let ledger = place.ledger();
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
fn a_success_has_events_too() {
    let place = Place::new();
    assert_eq!(place.run(["--events", "events.jsonl", "true"]).code, Some(0));
    assert_eq!(events(&place).len(), 2);
    assert!(!place.path(".agent").exists());
}

#[test]
fn the_last_event_tells_signals_and_what_was_left_behind() {
    let place = Place::new();
    let finished = place.run([
        "--events",
        "events.jsonl",
        "sh",
        "-c",
        "setsid sleep 600 >/dev/null 2>&1 & sleep 0.2; kill -TERM $$",
    ]);
    assert_eq!(finished.code, Some(143));
    let events = events(&place);
    let last = events.last().unwrap();
    assert_eq!((&last["exit_code"], &last["signal"], &last["left_behind"]), (&json!(143), &json!(15), &json!(1)));
}

#[test]
fn a_file_that_is_there_is_not_overwritten_and_nothing_is_run() {
    let place = Place::new();
    place.put("events.jsonl", "mine");
    let finished = place.run(["--events", "events.jsonl", "touch", "ran"]);
    assert_eq!(finished.code, Some(125));
    assert!(finished.stderr.starts_with("safe-run: failed to write the events to `events.jsonl`: "), "{finished:?}");
    assert!(
        finished.stderr.ends_with("the file is there already, and is not overwritten; remove it, or name another\n")
    );
    assert_eq!(fs::read_to_string(place.path("events.jsonl")).unwrap(), "mine");
    assert!(!place.path("ran").exists());
}

#[test]
fn a_file_that_a_killed_safe_run_left_empty_is_told_as_such() {
    let place = Place::new();
    let running = place.start(["--events", "events.jsonl", "sh", "-c", "echo ready > ready; sleep 600"]);
    place.wait_for("ready");
    running.send(Signal::KILL);
    running.finish();
    let finished = place.run(["--events", "events.jsonl", "true"]);
    assert_eq!(finished.code, Some(125));
    assert!(
        finished.stderr.contains("`events.jsonl`: the file is there already, and empty, as a safe-run"),
        "{finished:?}"
    );
}

#[test]
#[cfg(target_os = "linux")]
fn events_that_could_not_all_be_written_are_told_with_their_file() {
    let place = Place::new();
    // A limit of the size of files stands for a disk without room; the log is over it too.
    let script = "trap '' XFSZ; ulimit -f 8; exec \"$0\" --events events.jsonl sh -c 'yes | head -n 50000'";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_safe-run")]).current_dir(place.path(""));
    let finished: Finished = command.stdin(Stdio::null()).output().unwrap().into();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let told = "safe-run: failed to write the events: File too large (os error 27); `events.jsonl` is no whole record: \
        remove it before the next run\n";
    assert_eq!(finished.stderr, told);
}

#[test]
fn a_command_that_is_not_started_leaves_no_file_of_events_but_what_was_there() {
    let place = Place::new().with_pipe("pipe");
    for _ in 0..2 {
        assert_eq!(place.run(["--events", "events.jsonl", "no-such-command-anywhere"]).code, Some(127));
        assert!(!place.path("events.jsonl").exists());
    }
    let mut reader = Command::new("cat").arg(place.path("pipe")).stdout(Stdio::null()).spawn().unwrap();
    assert_eq!(place.run(["--events", "pipe", "no-such-command-anywhere"]).code, Some(127));
    assert!(reader.wait().unwrap().success() && place.path("pipe").exists(), "a pipe is not ours to remove");
}
