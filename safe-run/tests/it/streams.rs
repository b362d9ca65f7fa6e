//! Live streams: bytes pass through as they are and when they come.

#[cfg(target_os = "linux")]
use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::kit::{Finished, Place, Running, processes_with, unique_sleep, wait_until};

#[test]
fn each_stream_passes_through_unchanged() {
    let place = Place::new();
    let finished = place.shell("printf 'a\\0\\r\\nb\\377'; printf 'no newline' >&2");
    assert_eq!((finished.code, finished.stdout), (Some(0), b"a\0\r\nb\xff".to_vec()));
    assert_eq!(finished.stderr, "no newline");
}

#[test]
fn what_is_printed_passes_before_the_command_ends() {
    let place = Place::new().with_pipe("go");
    let mut running = place.start(["sh", "-c", "printf prompt; read answer < go || sleep 50"]);
    let mut prompt = [0; 6];
    running.0.stdout.as_mut().unwrap().read_exact(&mut prompt).unwrap();
    assert_eq!(&prompt, b"prompt");
    running.send(Signal::TERM);
    assert_eq!(running.finish().code, Some(143));
}

#[test]
fn input_reaches_the_command() {
    let place = Place::new();
    let mut command = place.command(["sh", "-c", "read line; echo got $line; cat"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"first\nrest\xff").unwrap();
    assert_eq!(Running(child).finish().stdout, b"got first\nrest\xff");
}

#[test]
fn the_command_ends_when_nobody_reads_its_output_any_more() {
    let place = Place::new();
    let mut command = place.command(["yes"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "y\n");
    // SIGPIPE, as without us.
    assert_eq!(Running(child).finish().code, Some(128 + 13));
}

/// A device on which nothing can be written.
#[cfg(target_os = "linux")]
fn full_disk() -> Stdio {
    #[expect(clippy::disallowed_methods, reason = "a device, and no file that could be torn")]
    let device = OpenOptions::new().write(true).open("/dev/full");
    device.unwrap().into()
}

/// Runs a shell script with one of the streams of safe-run, or both, on a disk without room.
#[cfg(target_os = "linux")]
fn on_a_full_disk(place: &Place, script: &str, is_full: [bool; 2]) -> Finished {
    let end = |is_full| {
        if is_full { full_disk() } else { Stdio::piped() }
    };
    let mut command = place.command(["sh", "-c", script]);
    command.stdout(end(is_full[0])).stderr(end(is_full[1])).output().unwrap().into()
}

#[test]
#[cfg(target_os = "linux")]
fn output_that_cannot_be_written_is_told_and_no_success() {
    let place = Place::new();
    let told =
        |stream: &str| format!("safe-run: {stream} could not be written: No space left on device (os error 28)\n");
    let lost = on_a_full_disk(&place, "echo out; echo err >&2", [true, false]);
    assert_eq!((lost.code, lost.stderr), (Some(125), format!("err\n{}", told("standard output"))));
    assert_eq!(on_a_full_disk(&place, "echo err >&2; echo out", [false, true]).code, Some(125));
    assert!(place.logs().is_empty(), "the command itself did not fail");
    assert_eq!(on_a_full_disk(&place, "exit 0", [true, true]).code, Some(0), "nothing was lost");

    let failed = on_a_full_disk(&place, "echo out; exit 42", [true, false]);
    assert_eq!(failed.code, Some(42), "the command's own code says more");
    assert!(failed.stderr.starts_with(&told("standard output")), "{failed:?}");
    assert!(place.log_text().contains("][STDOUT] out\n"), "what was read is kept");
    // As where nobody reads any more, the command learns of it.
    assert_eq!(on_a_full_disk(&place, "exec yes", [true, false]).code, Some(128 + 13));
}

#[test]
#[cfg(target_os = "linux")]
fn what_safe_run_itself_prints_is_no_success_where_it_cannot_be_written() {
    let place = Place::new();
    let mut command = place.command(["--version"]);
    let finished: Finished = command.stdout(full_disk()).stderr(Stdio::piped()).output().unwrap().into();
    assert_eq!(finished.code, Some(125));
    assert!(finished.stderr.starts_with("safe-run: standard output could not be written: "), "{finished:?}");
}

#[test]
fn a_reader_that_stands_still_holds_up_the_command_and_not_the_signals() {
    let place = Place::new();
    let sleep = unique_sleep();
    let running = place.start(["sh", "-c", &format!("sleep {sleep} & yes")]);
    wait_until("the pipe is full", || !processes_with(&sleep).is_empty());
    std::thread::sleep(std::time::Duration::from_millis(300));
    running.send(Signal::TERM);
    // Nobody has read a byte of its output yet.
    wait_until("the command has ended", || processes_with(&sleep).is_empty());
    assert_eq!(running.finish().code, Some(143));
}

#[test]
fn a_slow_reader_gets_all_even_when_the_time_for_the_streams_is_over() {
    let place = Place::new();
    let mut running = place.start(["--drain", "0", "head", "-c", "3000000", "/dev/zero"]);
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
fn exit_codes_are_the_commands_own() {
    let place = Place::new();
    for code in [0, 1, 2, 42, 125, 126, 127, 128, 255] {
        assert_eq!(place.shell(&format!("exit {code}")).code, Some(code));
    }
    for (signal, code) in [("TERM", 143), ("INT", 130), ("KILL", 137), ("SEGV", 139)] {
        assert_eq!(place.shell(&format!("ulimit -c 0; kill -{signal} $$")).code, Some(code), "{signal}");
    }
}

#[test]
fn a_command_that_cannot_be_started_has_codes_of_its_own_and_no_log() {
    let place = Place::new();
    let missing = place.run(["no-such-command-anywhere"]);
    assert_eq!(missing.code, Some(127));
    assert!(missing.stderr.starts_with("Error: Failed to spawn command: no-such-command-anywhere: "), "{missing:?}");
    place.put("plain", "no program");
    assert_eq!(place.run(["./plain"]).code, Some(126));
    assert_eq!(place.run(["run"]).code, Some(2));
    assert!(place.logs().is_empty());
}

#[test]
fn the_environment_and_the_arguments_reach_the_command_untouched() {
    let place = Place::new().with("SOME_VARIABLE", "some value");
    let shown = place.run(["sh", "-c", "printf '%s|' \"$SOME_VARIABLE\" \"$@\"", "sh", "", "a b", "--events", "*"]);
    assert_eq!(shown.stdout, b"some value||a b|--events|*|");
    let own = std::fs::read_to_string("/proc/self/status").unwrap();
    let status = place.run(["cat", "/proc/self/status"]);
    let status = String::from_utf8(status.stdout).unwrap();
    let mask = |text: &str| text.lines().find(|line| line.starts_with("SigBlk:")).map(str::to_owned);
    assert_eq!(mask(&status), mask(&own), "no signal is blocked that was not");
    let list = ["-c", "ls /proc/$$/fd"];
    let bare = Command::new("sh").args(list).stdin(Stdio::null()).output().unwrap().stdout;
    assert_eq!(place.run(["sh"].iter().chain(&list)).stdout, bare, "no file is open that was not");
}
