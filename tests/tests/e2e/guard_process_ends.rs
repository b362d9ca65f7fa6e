//! What a shim waits for, and what it does not wait for.

use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use counterproof_tests::McpClient;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::guard_kit::{GuardFolder, SERVER, text};

const DENY: &str = "  - {rule_id: d, kind: deny, match: {tool_name: {glob: [push]}}}\n";

/// Starts a shim in front of a shell script.
fn start_script(folder: &GuardFolder, script: &str) -> McpClient {
    McpClient::start(&mut folder.command_of(&["sh", "-c", script]))
}

fn run_status(folder: &GuardFolder) -> Value {
    folder.events().last().unwrap()["run"]["status"].clone()
}

#[test]
fn the_answer_to_any_last_request_is_awaited() {
    let folder = GuardFolder::new();
    // As slow as the first start of a server that is downloaded.
    let mut client = start_script(&folder, "sleep 7; read -r line; echo '{\"id\":1,\"result\":{}}'; cat > /dev/null");
    client.send_request("tools/list", &json!({"text": "x".repeat(2_000_000)}));
    client.close_input();
    assert_eq!(client.receive()["id"], 1);
    assert!(client.wait().0.success());
    assert_eq!(run_status(&folder), "SUCCEEDED");
}

#[test]
fn a_call_without_an_id_ends_when_it_is_forwarded() {
    let folder = GuardFolder::new();
    let mut client = folder.start();
    client.send("{\"method\":\"tools/call\",\"params\":{\"name\":\"echo\"}}\n");
    client.call("echo", &json!({}));
    client.close();
    let ends = folder.events_of("tool_call_end");
    assert_eq!((&ends[0]["status"], &ends[0]["bytes_out"]), (&json!("OK"), &json!(0)));
    assert_eq!((ends.len(), run_status(&folder)), (2, json!("SUCCEEDED")));
}

#[test]
fn a_question_that_the_client_does_not_answer_is_no_failure() {
    let folder = GuardFolder::new();
    let mut client = folder.start();
    client.call("ask", &json!({}));
    assert!(client.close().0.success());
    assert_eq!(folder.events_of("tool_call_end")[0]["status"], "CANCELLED");
    assert_eq!(run_status(&folder), "SUCCEEDED");
}

#[test]
fn repeated_signals_do_not_delay_the_end() {
    let folder = GuardFolder::new();
    let mut client = start_script(&folder, "trap '' TERM INT; echo ready; while :; do sleep 1; done");
    client.receive_line();
    let (id, is_over) = (Pid::from_raw(client.id().cast_signed()).unwrap(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Until the process is awaited below, its id is its own.
            while !is_over.load(Ordering::Relaxed) {
                let _ = kill_process(id, Signal::TERM);
                std::thread::sleep(Duration::from_millis(500));
            }
        });
        let stderr = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| client.receive_line()));
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(stderr.expect("the output ends"), None);
    });
    assert_eq!(client.wait().0.code(), Some(137));
    assert_eq!(run_status(&folder), "CANCELLED");
}

#[test]
fn the_client_sees_that_the_server_has_closed_its_output() {
    let folder = GuardFolder::new();
    let client = start_script(&folder, "echo '{}'; exec >&-; cat > /dev/null");
    client.receive();
    assert_eq!(client.receive_line(), None);
    assert!(client.close().0.success());
}

#[test]
fn a_call_that_is_open_when_the_server_crashes_is_answered_with_an_error() {
    let folder = GuardFolder::new();
    // The second line is a message that the crash cuts off.
    let mut client = start_script(&folder, "read -r line; printf '{\"id\":'; exit 3");
    let id = client.send_request("tools/call", &json!({"name": "echo"}));
    assert_eq!(client.receive_line().unwrap(), b"{\"id\":\n");
    let answer = client.receive();
    let error = json!({"code": -32000, "message": "the server ended with code 3"});
    assert_eq!((&answer["id"], &answer["error"]), (&json!(id), &error));
    assert_eq!(client.receive_line(), None);
    assert_eq!(client.close().0.code(), Some(3));
    let end = &folder.events_of("tool_call_end")[0];
    assert_eq!((&end["status"], &end["error"]["class"]), (&json!("ERROR"), &json!("transport")));
    assert_eq!(run_status(&folder), "FAILED");
}

#[test]
fn a_client_that_does_not_read_does_not_keep_a_run_from_its_end() {
    let folder = GuardFolder::new();
    let mut command = folder.command_of(&["sh", "-c", "read -r line; touch ready; yes '{}'"]);
    let mut shim = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let request = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\"}}\n";
    shim.stdin.as_mut().unwrap().write_all(request.as_bytes()).unwrap();
    while !folder.sandbox.path("ready").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    kill_process(Pid::from_child(&shim), Signal::TERM).unwrap();
    // The output is never read. A shim that waits for its reader would never end.
    shim.wait().unwrap();
    assert_eq!(folder.events_of("tool_call_end")[0]["status"], "CANCELLED");
    assert_eq!(run_status(&folder), "CANCELLED");
}

#[test]
fn a_server_that_closes_its_output_and_lives_on_fails_the_run() {
    let folder = GuardFolder::new();
    let mut client = start_script(&folder, "read -r line; exec >&-; cat > /dev/null");
    let id = client.send_request("tools/call", &json!({"name": "echo"}));
    let answer = client.receive();
    let message = "the server closed its output";
    assert_eq!((&answer["id"], &answer["error"]["message"]), (&json!(id), &json!(message)));
    assert_eq!(client.receive_line(), None);
    client.close();
    assert_eq!(folder.events_of("tool_call_end")[0]["status"], "ERROR");
    assert_eq!(run_status(&folder), "FAILED");
}

#[test]
fn a_refusal_of_the_python_sdk_is_a_tool_result_and_of_other_clients_an_error() {
    let folder = GuardFolder::new().with_rules(DENY);
    for (name, is_result) in [("mcp", true), ("claude-code", false)] {
        let mut client = folder.start();
        let info = json!({"name": name, "version": "0.1.0"});
        client.request("initialize", &json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}));
        let answer = client.call("push", &json!({}));
        assert_eq!((answer["result"]["isError"] == true, answer["error"]["code"] == -32081), (is_result, !is_result));
        client.close();
    }
}

#[test]
fn a_refusal_does_not_wait_for_a_prompt_of_the_server() {
    let folder = GuardFolder::new().with_rules(DENY);
    let mut client = start_script(&folder, "printf 'ready\\nLoading'; cat > /dev/null");
    client.receive_line();
    let id = client.send_request("tools/call", &json!({"name": "push"}));
    let mut lines = std::iter::from_fn(|| client.receive_line());
    let refusal = lines.find_map(|line| serde_json::from_slice::<Value>(&line).ok()).unwrap();
    assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!(id), &json!(-32081)));
    client.close();
}

#[test]
fn a_secret_in_two_pieces_is_masked_in_the_standard_error_of_the_server() {
    let folder = GuardFolder::new()
        .with_file("secrets.json", r#"[{"inject_as": "TOKEN", "secret_ref": "T"}]"#)
        .with_option("--secrets", "secrets.json")
        .with_variable("SUB_SECRET_T", "a-long-secret-value");
    let script = "printf 'begin a-long' >&2; sleep 1; printf -- '-secret-value end' >&2; sleep 1; printf ' last' >&2";
    let (_, stderr) = start_script(&folder, script).close();
    assert!(stderr.contains("begin [REDACTED] end last") && !stderr.contains("a-long"), "{stderr}");
}

#[test]
fn a_server_sees_neither_the_ledger_nor_the_policy() {
    let folder = GuardFolder::new().with_file("policy.yaml", "policy_id: p\nversion: '1'\nmode: observe\nrules: []\n");
    let (ledger, policy) = (folder.sandbox.path("own.db").to_string(), folder.sandbox.path("policy.yaml").to_string());
    let folder = folder.with_variable("COUNTERPROOF_LEDGER", &ledger).with_variable("COUNTERPROOF_POLICY", &policy);
    let mut client = folder.start();
    for name in ["COUNTERPROOF_LEDGER", "COUNTERPROOF_POLICY"] {
        assert_eq!(text(&client.call("environment", &json!({"name": name}))), "not set");
    }
    client.close();
    let started = &folder.events_of("run_start")[0];
    assert_eq!(started["run"]["policy"]["policy_id"], "p");
}

#[test]
fn a_standard_error_without_a_reader_does_not_stop_the_traffic() {
    let folder = GuardFolder::new();
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    let flags = rustix::fs::fcntl_getfl(&writer).unwrap();
    rustix::fs::fcntl_setfl(writer.as_fd(), flags | rustix::fs::OFlags::NONBLOCK).unwrap();
    while writer.write(&[b'x'; 4096]).is_ok() {}
    rustix::fs::fcntl_setfl(writer.as_fd(), flags).unwrap();
    let mut command = folder.command_of(&[SERVER]);
    let mut shim = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(writer).spawn().unwrap();
    drop(command);
    let mut stdin = shim.stdin.take().unwrap();
    // In observe mode the first line is reported, and forwarded.
    stdin.write_all(b"{not json}\n{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\"}}\n").unwrap();
    drop(stdin);
    let mut stdout = shim.stdout.take().unwrap();
    let (sender, output) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        let _ = stdout.read_to_string(&mut text);
        let _ = sender.send(text);
    });
    let output = output.recv_timeout(Duration::from_mins(1));
    let is_ended = output.is_ok();
    if !is_ended {
        shim.kill().unwrap();
    }
    let status = shim.wait().unwrap();
    let mut stderr = vec![0; 4096];
    reader.read_exact(&mut stderr).unwrap();
    assert!(output.expect("the output ends").contains("\"id\":1") && status.success());
}
