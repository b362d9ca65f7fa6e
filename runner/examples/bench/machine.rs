//! Memory of this process, read from `/proc`. Not available on systems other than Linux.

use std::fs;

/// Returns the peak memory of this process in MiB.
pub(crate) fn peak_memory() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kib: f64 = field(&status, "VmHWM")?.trim_end_matches(" kB").parse().ok()?;
    Some(kib / 1024.0)
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| Some(line.strip_prefix(name)?.trim_start().strip_prefix(':')?.trim()))
}
