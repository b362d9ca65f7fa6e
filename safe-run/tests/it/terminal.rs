//! Terminals: one for the command, and ours given to a command that reads from it.

use std::io::Write as _;
use std::process::Stdio;

use crate::kit::{Place, Running, wait_for_signal};

/// Runs a script on a terminal, types, and gives what the terminal showed and the exit code.
fn on_terminal(place: &Place, arguments: &[&str], typed: &[(&str, &[u8])]) -> (Option<i32>, String) {
    let mut command = place.command(["--pty"].iter().chain(arguments));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for (ready, keys) in typed {
        place.wait_for(ready);
        stdin.write_all(keys).unwrap();
    }
    let finished = Running(child).finish();
    drop(stdin);
    (finished.code, String::from_utf8_lossy(&finished.stdout).into_owned())
}

#[test]
fn a_command_can_have_a_terminal_on_which_its_streams_are_one() {
    let place = Place::new();
    let script = "test -t 0 && test -t 1 && test -t 2 && echo terminal; echo err >&2; exit 6";
    let (code, shown) = on_terminal(&place, &["sh", "-c", script], &[]);
    assert_eq!((code, &*shown), (Some(6), "terminal\r\nerr\r\n"));
    assert_eq!(place.ledger()[1..3], ["[SEQ=2][STDOUT] terminal", "[SEQ=3][STDOUT] err"]);
}

#[test]
fn without_being_asked_the_command_gets_pipes() {
    let finished = Place::new().shell("test -t 1 || echo pipe");
    assert_eq!(finished.stdout, b"pipe\n");
}

#[test]
fn the_keys_of_the_terminal_reach_the_command() {
    let place = Place::new();
    let script = "trap 'echo interrupted; exit 3' INT; echo ready > ready; while :; do sleep 0.01; done";
    let (code, shown) = on_terminal(&place, &["sh", "-c", script], &[("ready", b"\x03")]);
    assert!(code == Some(3) && shown.ends_with("interrupted\r\n"), "{shown}");
}

#[test]
fn a_command_that_reads_from_our_terminal_is_given_it() {
    let place = Place::new();
    let program = env!("CARGO_BIN_EXE_safe-run");
    let script = "echo ready > ready; read line; echo got $line; read line < /dev/tty; echo and $line";
    let (code, shown) = on_terminal(&place, &[program, "sh", "-c", script], &[("ready", b"one\ntwo\n")]);
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("got one") && shown.contains("and two"), "{shown}");
}

#[test]
fn a_key_that_ends_a_command_which_has_our_terminal_ends_us_as_well() {
    let place = Place::new();
    let program = env!("CARGO_BIN_EXE_safe-run");
    // It says that it is ready when it has read a line, so it has the terminal by then.
    let script = format!("echo first > first; read line; {}", wait_for_signal("INT", "ready"));
    let typed: [(&str, &[u8]); 2] = [("first", b"line\n"), ("ready", b"\x03")];
    let outer = format!("{program} sh -c '{script}'; echo code $?");
    let (_, shown) = on_terminal(&place, &["sh", "-c", &format!("trap : INT; {outer}")], &typed);
    assert!(shown.contains("code 130"), "{shown}");
}

#[test]
fn a_key_reaches_a_command_that_has_not_taken_the_terminal_through_us() {
    let place = Place::new();
    let program = env!("CARGO_BIN_EXE_safe-run");
    let script = format!("trap : INT; {program} sh -c '{}'; echo code $?", wait_for_signal("INT", "ready"));
    let (_, shown) = on_terminal(&place, &["sh", "-c", &script], &[("ready", b"\x03")]);
    assert!(shown.contains("code 130"), "{shown}");
}

#[test]
fn a_command_that_has_our_terminal_is_stopped_by_its_key_with_us_and_goes_on_when_we_are_continued() {
    let place = Place::new();
    let program = env!("CARGO_BIN_EXE_safe-run");
    // It says that it is ready when it has read a line, so it has the terminal by then.
    let inner = "echo first > first; read line; echo ready > ready; read line; echo and then $line; exit 5";
    let script = format!("set -m; {program} sh -c '{inner}'; echo $? > stopped; fg; echo code $?");
    let typed: [(&str, &[u8]); 3] = [("first", b"one\n"), ("ready", b"\x1a"), ("stopped", b"two\n")];
    let (code, shown) = on_terminal(&place, &["sh", "-c", &script], &typed);
    // 128 and the number of STOP: we stop ourselves when the command has been stopped.
    assert_eq!(place.wait_for("stopped"), "147", "{shown}");
    assert!(code == Some(0) && shown.contains("and then two") && shown.contains("code 5"), "{shown}");
}
