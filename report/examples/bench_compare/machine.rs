//! What this process took, as far as Linux says; elsewhere less is known.

use std::fs;

/// The unit of times in `/proc`: Linux fixes it for programs, whatever the kernel counts in.
const TICKS_PER_SECOND: f64 = 100.0;

/// Processor time of this process and all its threads, in the program and in the system, in seconds.
pub(crate) fn cpu_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program comes second, in brackets, and may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let ticks = |text: Option<&str>| text?.parse::<u64>().ok();
    Some((ticks(fields.next())? + ticks(fields.next())?) as f64 / TICKS_PER_SECOND)
}

/// Peak memory of this process in MiB.
pub(crate) fn peak_memory() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kib: f64 = field(&status, "VmHWM")?.trim_end_matches(" kB").parse().ok()?;
    Some(kib / 1024.0)
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| Some(line.strip_prefix(name)?.trim_start().strip_prefix(':')?.trim()))
}
