//! Output that exceeds the memory limits.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use crate::kit::{Running, Sandbox, child};

/// Returns the peak memory of a process, in KiB.
fn peak(process: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Memory limit of the program for any amount of output, in KiB.
const MEMORY_LIMIT: u64 = 20 * 1024;

#[test]
fn a_gigabyte_of_output_does_not_increase_memory_use() {
    let sandbox = Sandbox::new().with_pipe("go");
    let line = "x".repeat(99);
    let script = format!("yes {line} | head -c 1000000000; echo ready > ready; read x < go");
    let child_process = sandbox.command(["sh", "-c", &script]).stdout(Stdio::null()).spawn().unwrap();
    let running = Running(child_process);
    sandbox.wait_for("ready");
    let (wrapper, supervisor) = (peak(running.id()), peak(child(running.id())));
    assert!(wrapper < MEMORY_LIMIT && supervisor < MEMORY_LIMIT, "{wrapper} KiB, {supervisor} KiB");
    sandbox.feed("go");
    assert_eq!(running.finish().code, Some(0));
}

#[test]
fn a_line_of_a_hundred_megabytes_is_recorded_in_constant_memory() {
    const LENGTH: u64 = 100_000_000;
    // The events go to a pipe that this test reads late, so memory is measured while they are written.
    let sandbox = Sandbox::new().with_pipe("events");
    let script = format!("head -c {LENGTH} /dev/zero | tr '\\0' y; exit 1");
    let child_process =
        sandbox.command(["--events", "events", "sh", "-c", &script]).stdout(Stdio::null()).spawn().unwrap();
    let running = Running(child_process);
    let mut events = BufReader::new(File::open(sandbox.path("events")).unwrap());
    let mut start = String::new();
    events.read_line(&mut start).unwrap();
    let read = std::io::copy(&mut events.by_ref().take(LENGTH), &mut std::io::sink()).unwrap();
    assert_eq!(read, LENGTH);
    let memory = peak(running.id());
    assert!(memory < MEMORY_LIMIT, "{memory} KiB");
    let mut rest = String::new();
    events.read_to_string(&mut rest).unwrap();
    assert!(rest.lines().next().unwrap().ends_with("yyy\",\"line_end\":\"none\"}"), "{}", rest.len());
    assert_eq!(running.finish().code, Some(1));
    let log = sandbox.log();
    assert!(log.len() as u64 > 2 * LENGTH, "the line is in the section and in the ledger");
    assert!(log.ends_with(b"y\n[SEQ=3][META] safe-run exit: code=1\n--- END EVENTS ---\n"));
}
