//! Live output: bytes are forwarded unchanged and immediately.

#[cfg(target_os = "linux")]
use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::kit::{Finished, Running, Sandbox, processes_with, unique_sleep, wait_until};

#[test]
fn each_stream_is_forwarded_unchanged() {
    let sandbox = Sandbox::new();
    let finished = sandbox.shell("printf 'a\\0\\r\\nb\\377'; printf 'no newline' >&2");
    assert_eq!((finished.code, finished.stdout), (Some(0), b"a\0\r\nb\xff".to_vec()));
    assert_eq!(finished.stderr, "no newline");
}

#[test]
fn output_is_forwarded_while_the_command_runs() {
    let sandbox = Sandbox::new().with_pipe("go");
    let mut running = sandbox.start(["sh", "-c", "printf prompt; read answer < go || sleep 50"]);
    let mut prompt = [0; 6];
    running.0.stdout.as_mut().unwrap().read_exact(&mut prompt).unwrap();
    assert_eq!(&prompt, b"prompt");
    running.send(Signal::TERM);
    assert_eq!(running.finish().code, Some(143));
}

#[test]
fn input_reaches_the_command() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(["sh", "-c", "read line; echo got $line; cat"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"first\nrest\xff").unwrap();
    assert_eq!(Running(child).finish().stdout, b"got first\nrest\xff");
}

#[test]
fn the_command_gets_sigpipe_when_its_reader_is_gone() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(["yes"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "y\n");
    // 13 is SIGPIPE, as without safe-run.
    assert_eq!(Running(child).finish().code, Some(128 + 13));
}

/// A device on which every write fails.
#[cfg(target_os = "linux")]
fn full_disk() -> Stdio {
    #[expect(clippy::disallowed_methods, reason = "a device, which a crash cannot leave half-written")]
    let device = OpenOptions::new().write(true).open("/dev/full");
    device.unwrap().into()
}

/// Runs a shell script with one or both streams of safe-run on a full disk.
#[cfg(target_os = "linux")]
fn on_a_full_disk(sandbox: &Sandbox, script: &str, is_full: [bool; 2]) -> Finished {
    let end = |is_full| {
        if is_full { full_disk() } else { Stdio::piped() }
    };
    let mut command = sandbox.command(["sh", "-c", script]);
    command.stdout(end(is_full[0])).stderr(end(is_full[1])).output().unwrap().into()
}

#[test]
#[cfg(target_os = "linux")]
fn output_that_cannot_be_written_is_reported_and_is_not_a_success() {
    let sandbox = Sandbox::new();
    let message =
        |stream: &str| format!("safe-run: failed to write to {stream}: No space left on device (os error 28)\n");
    let lost = on_a_full_disk(&sandbox, "echo out; echo err >&2", [true, false]);
    assert_eq!((lost.code, lost.stderr), (Some(125), format!("err\n{}", message("standard output"))));
    assert_eq!(on_a_full_disk(&sandbox, "echo err >&2; echo out", [false, true]).code, Some(125));
    assert!(sandbox.logs().is_empty(), "the command itself did not fail");
    assert_eq!(on_a_full_disk(&sandbox, "exit 0", [true, true]).code, Some(0), "nothing was lost");

    let failed = on_a_full_disk(&sandbox, "echo out; exit 42", [true, false]);
    assert_eq!(failed.code, Some(42), "the command's own code takes precedence");
    assert!(failed.stderr.starts_with(&message("standard output")), "{failed:?}");
    assert!(sandbox.log_text().contains("][STDOUT] out\n"), "the output is recorded");
    // The command gets SIGPIPE, as when its reader is gone.
    assert_eq!(on_a_full_disk(&sandbox, "exec yes", [true, false]).code, Some(128 + 13));
}

#[test]
#[cfg(target_os = "linux")]
fn safe_run_fails_if_it_cannot_write_its_own_output() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(["--version"]);
    let finished: Finished = command.stdout(full_disk()).stderr(Stdio::piped()).output().unwrap().into();
    assert_eq!(finished.code, Some(125));
    assert!(finished.stderr.starts_with("safe-run: failed to write to standard output: "), "{finished:?}");
}

#[test]
fn a_stalled_reader_blocks_the_command_but_not_signals() {
    let sandbox = Sandbox::new();
    let sleep = unique_sleep();
    let running = sandbox.start(["sh", "-c", &format!("sleep {sleep} & yes")]);
    wait_until("the pipe is full", || !processes_with(&sleep).is_empty());
    std::thread::sleep(std::time::Duration::from_millis(300));
    running.send(Signal::TERM);
    // No byte of its output has been read yet.
    wait_until("the command has ended", || processes_with(&sleep).is_empty());
    assert_eq!(running.finish().code, Some(143));
}

#[test]
fn a_slow_reader_gets_all_output_even_after_the_drain_time() {
    let sandbox = Sandbox::new();
    let mut running = sandbox.start(["--drain", "0", "head", "-c", "3000000", "/dev/zero"]);
    let mut stdout = running.0.stdout.take().unwrap();
    let (mut buffer, mut read) = (vec![0; 16 * 1024], 0);
    loop {
        std::thread::sleep(std::time::Duration::from_millis(2));
        match stdout.read(&mut buffer).unwrap() {
            0 => break,
            more => read += more,
        }
    }
    assert_eq!((read, running.finish().code), (3_000_000, Some(0)));
}

#[test]
fn the_exit_code_is_that_of_the_command() {
    let sandbox = Sandbox::new();
    for code in [0, 1, 2, 42, 125, 126, 127, 128, 255] {
        assert_eq!(sandbox.shell(&format!("exit {code}")).code, Some(code));
    }
    for (signal, code) in [("TERM", 143), ("INT", 130), ("KILL", 137), ("SEGV", 139)] {
        assert_eq!(sandbox.shell(&format!("ulimit -c 0; kill -{signal} $$")).code, Some(code), "{signal}");
    }
}

#[test]
fn a_command_that_cannot_be_started_has_its_own_exit_codes_and_no_log() {
    let sandbox = Sandbox::new();
    let missing = sandbox.run(["no-such-command-anywhere"]);
    assert_eq!(missing.code, Some(127));
    assert!(missing.stderr.starts_with("Error: Failed to spawn command: no-such-command-anywhere: "), "{missing:?}");
    sandbox.put("plain", "no program");
    assert_eq!(sandbox.run(["./plain"]).code, Some(126));
    assert_eq!(sandbox.run(["run"]).code, Some(2));
    assert!(sandbox.logs().is_empty());
}

#[test]
fn the_environment_and_the_arguments_reach_the_command_unchanged() {
    let sandbox = Sandbox::new().with("SOME_VARIABLE", "some value");
    let shown = sandbox.run(["sh", "-c", "printf '%s|' \"$SOME_VARIABLE\" \"$@\"", "sh", "", "a b", "--events", "*"]);
    assert_eq!(shown.stdout, b"some value||a b|--events|*|");
    let own = std::fs::read_to_string("/proc/self/status").unwrap();
    let status = sandbox.run(["cat", "/proc/self/status"]);
    let status = String::from_utf8(status.stdout).unwrap();
    let mask = |text: &str| text.lines().find(|line| line.starts_with("SigBlk:")).map(str::to_owned);
    assert_eq!(mask(&status), mask(&own), "no further signal is blocked");
    let list = ["-c", "ls /proc/$$/fd"];
    let bare = Command::new("sh").args(list).stdin(Stdio::null()).output().unwrap().stdout;
    assert_eq!(sandbox.run(["sh"].iter().chain(&list)).stdout, bare, "no further file is open");
}
