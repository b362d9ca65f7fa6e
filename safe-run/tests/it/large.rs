//! Output beyond memory.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use crate::kit::{Place, Running, child};

/// The most memory that a process has had, in KiB.
fn peak(process: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Memory that the program may take whatever a command prints, in KiB.
const FLAT: u64 = 20 * 1024;

#[test]
fn a_gigabyte_of_output_takes_no_more_memory_than_a_little() {
    let place = Place::new().with_pipe("go");
    let line = "x".repeat(99);
    let script = format!("yes {line} | head -c 1000000000; echo ready > ready; read x < go");
    let child_process = place.command(["sh", "-c", &script]).stdout(Stdio::null()).spawn().unwrap();
    let running = Running(child_process);
    place.wait_for("ready");
    let (wrapper, supervisor) = (peak(running.id()), peak(child(running.id())));
    assert!(wrapper < FLAT && supervisor < FLAT, "{wrapper} KiB, {supervisor} KiB");
    place.feed("go");
    assert_eq!(running.finish().code, Some(0));
}

#[test]
fn a_line_of_a_hundred_megabytes_is_kept_whole_in_flat_memory() {
    const LENGTH: u64 = 100_000_000;
    // The events go to a pipe that is not read at once, so that memory is looked at while they are written.
    let place = Place::new().with_pipe("events");
    let script = format!("head -c {LENGTH} /dev/zero | tr '\\0' y; exit 1");
    let child_process =
        place.command(["--events", "events", "sh", "-c", &script]).stdout(Stdio::null()).spawn().unwrap();
    let running = Running(child_process);
    let mut events = BufReader::new(File::open(place.path("events")).unwrap());
    let mut start = String::new();
    events.read_line(&mut start).unwrap();
    let read = std::io::copy(&mut events.by_ref().take(LENGTH), &mut std::io::sink()).unwrap();
    assert_eq!(read, LENGTH);
    let memory = peak(running.id());
    assert!(memory < FLAT, "{memory} KiB");
    let mut rest = String::new();
    events.read_to_string(&mut rest).unwrap();
    assert!(rest.lines().next().unwrap().ends_with("yyy\",\"line_end\":\"none\"}"), "{}", rest.len());
    assert_eq!(running.finish().code, Some(1));
    let log = place.log();
    assert!(log.len() as u64 > 2 * LENGTH, "once in the section and once in the ledger");
    assert!(log.ends_with(b"y\n[SEQ=3][META] safe-run exit: code=1\n--- END EVENTS ---\n"));
}
