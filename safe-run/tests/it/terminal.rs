//! Terminals: a pseudo-terminal for the command, and job control of our own.

use std::io::Write as _;
use std::process::Stdio;

use crate::kit::{Running, Sandbox, wait_for_signal};

/// Runs a command on a terminal, types keys, and returns the exit code and the output of the terminal.
fn on_terminal(sandbox: &Sandbox, arguments: &[&str], typed: &[(&str, &[u8])]) -> (Option<i32>, String) {
    let mut command = sandbox.command(["--pty"].iter().chain(arguments));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for (ready, keys) in typed {
        sandbox.wait_for(ready);
        stdin.write_all(keys).unwrap();
    }
    let finished = Running(child).finish();
    drop(stdin);
    (finished.code, String::from_utf8_lossy(&finished.stdout).into_owned())
}

#[test]
fn with_pty_the_command_has_a_terminal_that_merges_its_streams() {
    let sandbox = Sandbox::new();
    let script = "test -t 0 && test -t 1 && test -t 2 && echo terminal; echo err >&2; exit 6";
    let (code, shown) = on_terminal(&sandbox, &["sh", "-c", script], &[]);
    assert_eq!((code, &*shown), (Some(6), "terminal\r\nerr\r\n"));
    assert_eq!(sandbox.ledger()[1..3], ["[SEQ=2][STDOUT] terminal", "[SEQ=3][STDOUT] err"]);
}

#[test]
fn without_pty_the_command_gets_pipes() {
    let finished = Sandbox::new().shell("test -t 1 || echo pipe");
    assert_eq!(finished.stdout, b"pipe\n");
}

#[test]
fn terminal_keys_reach_the_command() {
    let sandbox = Sandbox::new();
    let script = "trap 'echo interrupted; exit 3' INT; echo ready > ready; while :; do sleep 0.01; done";
    let (code, shown) = on_terminal(&sandbox, &["sh", "-c", script], &[("ready", b"\x03")]);
    assert!(code == Some(3) && shown.ends_with("interrupted\r\n"), "{shown}");
}

#[test]
fn a_command_that_reads_from_our_terminal_gets_it() {
    let sandbox = Sandbox::new();
    let program = env!("CARGO_BIN_EXE_safe-run");
    let script = "echo ready > ready; read line; echo got $line; read line < /dev/tty; echo and $line";
    let (code, shown) = on_terminal(&sandbox, &[program, "sh", "-c", script], &[("ready", b"one\ntwo\n")]);
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("got one") && shown.contains("and two"), "{shown}");
}

#[test]
fn a_key_that_ends_a_command_with_our_terminal_ends_safe_run_too() {
    let sandbox = Sandbox::new();
    let program = env!("CARGO_BIN_EXE_safe-run");
    // The script is ready after it has read a line, so it has the terminal by then.
    let script = format!("echo first > first; read line; {}", wait_for_signal("INT", "ready"));
    let typed: [(&str, &[u8]); 2] = [("first", b"line\n"), ("ready", b"\x03")];
    let outer = format!("{program} sh -c '{script}'; echo code $?");
    let (_, shown) = on_terminal(&sandbox, &["sh", "-c", &format!("trap : INT; {outer}")], &typed);
    assert!(shown.contains("code 130"), "{shown}");
}

#[test]
fn a_key_reaches_a_command_without_the_terminal_through_safe_run() {
    let sandbox = Sandbox::new();
    let program = env!("CARGO_BIN_EXE_safe-run");
    let script = format!("trap : INT; {program} sh -c '{}'; echo code $?", wait_for_signal("INT", "ready"));
    let (_, shown) = on_terminal(&sandbox, &["sh", "-c", &script], &[("ready", b"\x03")]);
    assert!(shown.contains("code 130"), "{shown}");
}

#[test]
fn the_stop_key_stops_a_command_with_our_terminal_together_with_safe_run() {
    let sandbox = Sandbox::new();
    let program = env!("CARGO_BIN_EXE_safe-run");
    // The script is ready after it has read a line, so it has the terminal by then.
    let inner = "echo first > first; read line; echo ready > ready; read line; echo and then $line; exit 5";
    let script = format!("set -m; {program} sh -c '{inner}'; echo $? > stopped; fg; echo code $?");
    let typed: [(&str, &[u8]); 3] = [("first", b"one\n"), ("ready", b"\x1a"), ("stopped", b"two\n")];
    let (code, shown) = on_terminal(&sandbox, &["sh", "-c", &script], &typed);
    // 128 plus the number of STOP: safe-run stops itself after the command was stopped.
    assert_eq!(sandbox.wait_for("stopped"), "147", "{shown}");
    assert!(code == Some(0) && shown.contains("and then two") && shown.contains("code 5"), "{shown}");
}
