//! The events of a shim in front of a real server.

use std::collections::BTreeSet;
use std::time::Instant;

use counterproof_tests::McpClient;
use serde_json::{Value, json};

use crate::guard_kit::{GuardFolder, names, text};

#[test]
fn evt_001_every_event_is_one_line() {
    let folder = GuardFolder::new();
    let mut client = folder.start();
    client.call("echo", &json!({"text": "two\nlines"}));
    assert!(client.close().0.success());
    let bytes = std::fs::read(folder.sandbox.path("events.jsonl")).unwrap();
    assert!(bytes.ends_with(b"\n") && !bytes.contains(&b'\r'));
    for line in folder.event_lines() {
        assert!(serde_json::from_str::<Value>(&line).unwrap().is_object(), "{line}");
    }
}

#[test]
fn evt_002_every_event_has_the_envelope() {
    let secrets = r#"{"server_name": "test", "secret_bindings": [{"inject_as": "TOKEN", "secret_ref": "T"}]}"#;
    let folder = GuardFolder::new()
        .with_policy("policy_id: p\nversion: '1'\nmode: guardrails\nrules: []\n")
        .with_file("secrets.json", secrets)
        .with_option("--secrets", "secrets.json")
        .with_variable("SUB_SECRET_T", "a-long-secret-value");
    let mut client = folder.start();
    client.call("echo", &json!({}));
    client.close();
    let events = folder.events();
    assert!(names(&events).contains(&"secret_injection"));
    for event in &events {
        for field in ["v", "type", "ts", "run_id", "agent_id", "client", "env"] {
            assert!(event[field].is_string(), "{field} in {event}");
        }
        for field in ["host_id", "proc_id", "shim_id"] {
            assert!(event["source"][field].is_string(), "source.{field} in {event}");
        }
    }
}

#[test]
fn evt_003_the_events_of_a_call_are_in_order() {
    let folder = GuardFolder::new();
    let mut client = folder.start();
    client.call("echo", &json!({}));
    client.close();
    let expected = ["run_start", "tool_call_start", "tool_call_decision", "tool_call_end", "run_end"];
    assert_eq!(names(&folder.events()), expected);
}

#[test]
fn a_policy_file_that_is_in_use_has_an_event_after_the_start() {
    let policy = "policy_id: p\nversion: '1'\nmode: guardrails\nrules: [{rule_id: a, kind: allow}]\n";
    let folder = GuardFolder::new().with_policy(policy);
    folder.start().close();
    let events = folder.events();
    assert_eq!(names(&events), ["run_start", "policy_loaded", "run_end"]);
    let mut loaded = events[1]["policy"].clone();
    assert_eq!(loaded["policy_id"], "p");
    assert_eq!(loaded["rules"].take(), json!([{"rule_id": "a", "kind": "allow"}]));
    loaded.as_object_mut().unwrap().remove("rules");
    assert_eq!(loaded, events[0]["run"]["policy"]);
}

#[test]
fn empty_variables_are_not_set() {
    let names =
        ["COUNTERPROOF_LEDGER", "COUNTERPROOF_POLICY", "COUNTERPROOF_TERMINATION", "SUB_RUN_ID", "SUB_AGENT_ID"];
    let names = [&names[..], &["SUB_CLIENT", "SUB_ENV", "SUB_PRINCIPAL", "SUB_WORKLOAD"]].concat();
    let names = [&names[..], &["SUB_SECRET_BINDINGS", "SUB_SECRET_BINDINGS_FILE", "SUB_SECRETS_PATH"]].concat();
    let folder = names.into_iter().fold(GuardFolder::new(), |folder, name| folder.with_variable(name, ""));
    let (status, stderr) = folder.start().close();
    assert!(status.success() && stderr.is_empty(), "{stderr}");
    assert!(folder.sandbox.path("state/counterproof/ledger.db").exists());
    let start = &folder.events()[0];
    assert_eq!((&start["agent_id"], &start["run"]["policy"]["policy_id"]), (&json!("unknown"), &json!("default")));
    let runs = folder.sandbox.run(["ledger", "runs", "--json"]);
    assert_eq!(runs.code, Some(0), "{runs}");
    let script = "echo ${SUB_AGENT_ID-none} ${SUB_PRINCIPAL-none} ${COUNTERPROOF_POLICY-none}";
    let agent = folder.sandbox.run(["guard", "run", "--", "sh", "-c", script]);
    assert_eq!((agent.code, agent.stdout.as_str()), (Some(0), "\n"), "{agent}");
}

#[test]
fn evt_004_all_events_have_the_run_id_of_the_environment() {
    let folder = GuardFolder::new().with_variable("SUB_RUN_ID", "run-of-the-test");
    let mut client = folder.start();
    for _ in 0..3 {
        client.call("echo", &json!({}));
    }
    client.close();
    let events = folder.events();
    assert_eq!(events.len(), 11);
    assert!(events.iter().all(|event| event["run_id"] == "run-of-the-test"));
}

#[test]
fn evt_005_calls_have_unique_ids_and_ascending_numbers() {
    let folder = GuardFolder::new();
    let mut client = folder.start();
    for _ in 0..100 {
        client.call("echo", &json!({}));
    }
    client.close();
    let starts = folder.events_of("tool_call_start");
    let ids: BTreeSet<_> = starts.iter().map(|event| event["call"]["call_id"].to_string()).collect();
    assert_eq!(ids.len(), 100);
    let numbers: Vec<_> = starts.iter().map(|event| event["call"]["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=100).collect::<Vec<_>>());
}

#[test]
fn evt_006_names_of_servers_and_tools_stay_as_they_are() {
    let folder = GuardFolder::new();
    let mut client = folder.start();
    let listed = client.request("tools/list", &json!({}));
    assert_eq!(listed["result"]["tools"][0]["name"], "linear_create_issue");
    client.call("linear_create_issue", &json!({}));
    client.close();
    for event in folder.events().iter().filter(|event| event["call"].is_object()) {
        assert_eq!(event["call"]["server_name"], "test");
        assert_eq!(event["call"]["tool_name"], "linear_create_issue");
    }
}

#[test]
fn evt_007_the_latency_is_that_of_the_server() {
    let folder = GuardFolder::new();
    let mut client = folder.start();
    let started = Instant::now();
    client.call("sleep", &json!({"ms": 200}));
    let seen = u64::try_from(started.elapsed().as_millis()).unwrap();
    client.close();
    let latency = folder.events_of("tool_call_end")[0]["latency_ms"].as_u64().unwrap();
    assert!((200..=seen + 1).contains(&latency), "{latency} ms of {seen} ms");
}

#[test]
fn evt_008_errors_have_a_class_and_no_stack_trace() {
    let folder = GuardFolder::new();
    let mut client = folder.start();
    assert_eq!(client.call("fail", &json!({}))["error"]["code"], -32000);
    client.call("tool_error", &json!({}));
    client.close();
    let ends = folder.events_of("tool_call_end");
    for (end, message) in ends.iter().zip(["no such issue", "disk full"]) {
        assert_eq!((&end["status"], &end["error"]["class"]), (&json!("ERROR"), &json!("upstream_error")));
        assert_eq!(end["error"]["message"], message);
    }
}

#[test]
fn evt_009_the_summary_counts_calls() {
    let folder = GuardFolder::new().with_rules("  - {rule_id: d, kind: deny, match: {tool_name: {glob: [push]}}}\n");
    let mut client = folder.start();
    for tool in ["echo", "push", "echo", "push", "echo"] {
        client.call(tool, &json!({}));
    }
    client.close();
    let events = folder.events();
    let run = &events.last().unwrap()["run"];
    let summary = &run["summary"];
    assert_eq!((&summary["calls_total"], &summary["calls_allowed"]), (&json!(5), &json!(3)));
    assert_eq!((&summary["calls_blocked"], &summary["errors_total"]), (&json!(2), &json!(2)));
    assert!(summary["duration_ms"].is_u64());
    assert_eq!(run["status"], "SUCCEEDED");
}

fn args_hashes(folder: &GuardFolder) -> Vec<String> {
    let starts = folder.events_of("tool_call_start");
    starts.iter().map(|event| event["call"]["args_hash"].as_str().unwrap().to_owned()).collect()
}

fn send_args(client: &mut McpClient, args: &str) {
    let line = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":ARGS}}"#;
    client.send(line.replace("ARGS", args) + "\n");
    client.receive();
}

#[test]
fn hash_001_the_order_of_keys_does_not_change_the_hash() {
    let folder = GuardFolder::new();
    let mut client = folder.start();
    send_args(&mut client, r#"{"b": [1.0, {"y": 1, "x": 2}], "a": "é"}"#);
    send_args(&mut client, r#"{"a":"\u00e9","b":[1,{"x":2,"y":1}]}"#);
    client.close();
    let hashes = args_hashes(&folder);
    assert_eq!(hashes[0], hashes[1]);
}

#[test]
fn hash_002_the_published_hashes_are_stable() {
    let folder = GuardFolder::new();
    for _ in 0..3 {
        let mut client = folder.start();
        send_args(&mut client, r#"{"b":2,"a":1}"#);
        send_args(&mut client, r#"{"command":"git push","branch":"main","force":false}"#);
        client.close();
    }
    let hashes = args_hashes(&folder);
    assert_eq!(hashes.len(), 6);
    for pair in hashes.chunks(2) {
        assert_eq!(pair[0], "43258cff783fe7036d8a43033f830adfc60ec037382473548ac742b888292777");
        assert_eq!(pair[1], "e13c608f6d08e999ce8c39b52fa274a731ccab0e6b3b3e62cd23511b93d7527e");
    }
}

/// A call whose arguments are larger than the guard inspects, and the text of the arguments.
fn large_call(id: usize, bytes: usize) -> (String, String) {
    let args = format!(r#"{{"text":"{}"}}"#, "x".repeat(bytes));
    let line = r#"{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"size","arguments":ARGS}}"#;
    (line.replace("ID", &id.to_string()).replace("ARGS", &args) + "\n", args)
}

#[test]
fn buf_001_large_arguments_are_forwarded_and_their_preview_is_truncated() {
    let folder = GuardFolder::new();
    let mut client = folder.start();
    client.send(large_call(1, 1 << 20).0);
    client.receive();
    client.close();
    let preview = &folder.events_of("tool_call_start")[0]["call"]["preview"];
    assert_eq!(*preview, json!({"truncated": true, "args_preview": "[TRUNCATED]"}));
}

#[test]
fn buf_003_the_server_receives_large_arguments_whole() {
    let folder = GuardFolder::new().with_server_arguments(&["--log", "received.log"]);
    let mut client = folder.start();
    let (line, _) = large_call(1, 5 << 20);
    client.send(&line);
    assert_eq!(text(&client.receive()), line.len().to_string());
    client.close();
    assert!(std::fs::read(folder.sandbox.path("received.log")).unwrap() == line.as_bytes());
    assert_eq!(folder.events_of("tool_call_start")[0]["call"]["bytes_in"], line.len());
}

#[test]
fn buf_004_large_arguments_have_the_hash_of_their_bytes() {
    let folder = GuardFolder::new();
    let mut client = folder.start();
    let (line, args) = large_call(1, 2 << 20);
    client.send(line);
    client.receive();
    client.close();
    let expected = counterproof_artifact::Sha256Digest::from_bytes(args.as_bytes()).to_string();
    let call = &folder.events_of("tool_call_start")[0]["call"];
    assert_eq!((&call["args_stream_hash"], &call["args_hash"]), (&json!(expected), &json!(expected)));
}

/// Peak resident memory of a process in KiB.
#[cfg(target_os = "linux")]
fn peak_memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn buf_002_memory_is_bounded_with_fifty_large_calls_at_once() {
    let folder = GuardFolder::new();
    let mut client = folder.start();
    client.call("echo", &json!({}));
    let before = peak_memory(client.id());
    for id in 10..60 {
        client.send(large_call(id, 4 << 20).0);
    }
    for _ in 10..60 {
        client.receive();
    }
    let grown = peak_memory(client.id()) - before;
    client.close();
    assert_eq!(folder.events_of("tool_call_end").len(), 51);
    assert!(grown < 32 * 1024, "200 MiB of arguments took {grown} KiB more");
}

#[test]
fn id_001_events_carry_the_identity_of_the_environment() {
    let folder = GuardFolder::new()
        .with_variable("SUB_RUN_ID", "r-7")
        .with_variable("SUB_AGENT_ID", "reviewer")
        .with_variable("SUB_ENV", "ci")
        .with_variable("SUB_CLIENT", "claude")
        .with_variable("SUB_PRINCIPAL", "jo@example.org")
        .with_variable("SUB_WORKLOAD", r#"{"repo": "acme/shop", "labels": {"team": "core"}}"#);
    let mut client = folder.start();
    client.call("echo", &json!({}));
    client.close();
    let events = folder.events();
    assert_eq!(events.len(), 5);
    for event in events {
        let identity = ["run_id", "agent_id", "env", "client", "principal"].map(|field| event[field].clone());
        assert_eq!(json!(identity), json!(["r-7", "reviewer", "ci", "claude", "jo@example.org"]));
        assert_eq!(event["workload"], json!({"repo": "acme/shop", "labels": {"team": "core"}}));
    }
}
