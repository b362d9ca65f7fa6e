//! The processes of a shim: each of them ends when another one ends or is killed.

use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};

use crate::guard_kit::{GuardFolder, SERVER, names, text};

fn pid(id: u32) -> Pid {
    Pid::from_raw(id.cast_signed()).unwrap()
}

/// Waits until a process is gone.
#[track_caller]
fn assert_gone(process: Pid) {
    let started = Instant::now();
    while test_kill_process(process).is_ok() {
        assert!(started.elapsed() < Duration::from_mins(1), "the process {process:?} is still there");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Starts a process below the server that leaves its group. Returns its id.
fn leave_child(client: &mut counterproof_tests::McpClient) -> Pid {
    let answer = client.call("leave_child", &json!({}));
    pid(text(&answer).parse().unwrap())
}

fn run_status(folder: &GuardFolder) -> Value {
    folder.events().last().unwrap()["run"]["status"].clone()
}

#[test]
fn proc_001_a_signal_ends_the_shim_the_server_and_its_children() {
    for signal in [Signal::INT, Signal::TERM] {
        let folder = GuardFolder::new();
        let mut client = folder.start();
        let child = leave_child(&mut client);
        kill_process(pid(client.id()), signal).unwrap();
        let (status, _) = client.wait();
        assert_eq!(status.code(), Some(128 + signal.as_raw()));
        assert_gone(child);
        assert_eq!(run_status(&folder), "CANCELLED");
    }
}

#[test]
fn proc_002_the_end_of_the_input_ends_the_shim_the_server_and_its_children() {
    let folder = GuardFolder::new();
    let mut client = folder.start();
    let child = leave_child(&mut client);
    let (status, stderr) = client.close();
    assert!(status.success(), "{stderr}");
    assert_gone(child);
    assert_eq!(run_status(&folder), "SUCCEEDED");
}

#[test]
fn a_server_that_ignores_the_end_of_its_input_is_ended() {
    let folder = GuardFolder::new();
    let mut client =
        counterproof_tests::McpClient::start(&mut folder.command_of(&["sh", "-c", "trap '' TERM; sleep 600"]));
    client.close_input();
    let (status, _) = client.wait();
    assert_eq!(status.code(), Some(137));
    assert_eq!(run_status(&folder), "SUCCEEDED");
}

#[test]
fn proc_003_a_crash_of_the_server_ends_the_call_and_the_run() {
    let folder = GuardFolder::new();
    let mut client = folder.start();
    client.call("echo", &json!({}));
    client.send_request("tools/call", &json!({"name": "crash"}));
    assert_eq!(client.receive()["error"]["code"], -32000);
    assert_eq!(client.receive_line(), None, "the output ends");
    assert_eq!(client.wait().0.code(), Some(3), "the code of the server");
    let end = &folder.events_of("tool_call_end")[1];
    assert_eq!((&end["status"], &end["error"]["class"]), (&json!("ERROR"), &json!("transport")));
    let events = folder.events();
    let run = &events.last().unwrap()["run"];
    assert_eq!((&run["status"], &run["summary"]["calls_total"]), (&json!("FAILED"), &json!(2)));
    assert_eq!(run["summary"]["errors_total"], 1);
}

#[test]
fn a_shim_that_is_killed_leaves_no_process_and_no_answered_call_unrecorded() {
    let folder = GuardFolder::new();
    let mut client = folder.start();
    let child = leave_child(&mut client);
    for number in 0..20 {
        client.call("echo", &json!({"number": number}));
    }
    client.kill();
    client.wait();
    assert_gone(child);
    let events = folder.events();
    assert_eq!(names(&events).iter().filter(|name| **name == "tool_call_end").count(), 21);
    // The ledger has them when it is read.
    let found = folder.sandbox.run(["ledger", "query", "--limit", "100", "--json"]);
    assert_eq!(found.code, Some(0), "{found}");
    assert_eq!(found.stdout.matches("\"call_id\"").count(), 21, "{found}");
}

#[test]
fn the_answer_to_the_last_request_is_awaited() {
    let folder = GuardFolder::new();
    let mut client = folder.start();
    client.send_request("tools/call", &json!({"name": "sleep", "arguments": {"ms": 300}}));
    client.close_input();
    assert_eq!(text(&client.receive()), "awake");
    assert!(client.wait().0.success());
}

#[test]
fn a_server_that_does_not_exist_is_an_error_with_its_name() {
    let folder = GuardFolder::new();
    let output = folder.command_of(&["no-such-server"]).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr.contains("no-such-server"), "{stderr}");
    assert_eq!(names(&folder.events()), ["run_start", "run_end"]);
    assert_eq!(run_status(&folder), "FAILED");
}

#[test]
fn a_cancelled_call_is_recorded_as_cancelled() {
    let folder = GuardFolder::new();
    let mut client = folder.start();
    let id = client.send_request("tools/call", &json!({"name": "hang"}));
    client.send(format!("{}\n", json!({"method": "notifications/cancelled", "params": {"requestId": id}})));
    client.call("echo", &json!({}));
    client.close();
    let ends = folder.events_of("tool_call_end");
    assert_eq!((&ends[0]["status"], &ends[1]["status"]), (&json!("CANCELLED"), &json!("OK")));
    assert_eq!(run_status(&folder), "SUCCEEDED");
}

#[test]
fn both_directions_are_the_bytes_of_the_two_sides() {
    let lines = concat!(
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"_meta\":{\"x\":1.50}}}\n",
        " {\"id\" : \"a\\u0062\", \"method\":\"unknown/method\"}\r\n",
        "\n",
        "{\"method\":\"notifications/progress\",\"params\":{\"progressToken\":\"t\",\"progress\":1e0}}\n",
        "{not json}\n",
        "[{\"id\":2,\"method\":\"tools/list\"},{\"id\":3,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\"}}]\n",
        "{\"id\":9007199254740993,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\"arguments\":{\"b\":1,\"a\":2}}}\n",
        "{\"id\":4,\"method\":\"tools/call\",\"params\":{\"name\":\"big\",\"arguments\":{\"bytes\":3000000}}}\n",
        "{\"id\":5,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\"}}",
    );
    let run = |mut command: Command, log: &str| {
        use std::io::Write as _;
        let mut child =
            command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()).unwrap());
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        assert!(output.status.success());
        (output.stdout, std::fs::read(log).unwrap())
    };
    let folder = GuardFolder::new();
    let (direct_log, log) = (folder.sandbox.path("direct.log"), folder.sandbox.path("guarded.log"));
    let mut direct = Command::new(SERVER);
    direct.args(["--log", direct_log.as_str()]);
    let expected = run(direct, direct_log.as_str());
    let actual = run(folder.command_of(&[SERVER, "--log", log.as_str()]), log.as_str());
    assert!(actual.1 == lines.as_bytes(), "the server received {:?}", String::from_utf8_lossy(&actual.1));
    assert!(actual == expected, "the client received {} bytes instead of {}", actual.0.len(), expected.0.len());
}

#[test]
fn a_request_of_the_server_and_its_answer_pass() {
    let folder = GuardFolder::new();
    let mut client = folder.start();
    let id = client.send_request("tools/call", &json!({"name": "sample", "arguments": {"id": 1}}));
    let asked = client.receive();
    assert_eq!((&asked["method"], &asked["id"]), (&json!("sampling/createMessage"), &json!(id)));
    client.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"x\":1.0}}\n");
    assert_eq!(text(&client.receive()), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"x\":1.0}}\n");
    client.close();
    assert_eq!(folder.events_of("tool_call_end").len(), 1);
}
