//! Describes the machine that figures are measured on. Only Linux reports all fields.

use std::fs;

/// Returns processor, cores, memory and load in one line.
pub(crate) fn notes() -> String {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let (processor, memory) = (read("/proc/cpuinfo"), read("/proc/meminfo"));
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let load = read("/proc/loadavg");
    format!(
        "{} × {cores}, {} memory, load before {}",
        field(&processor, "model name").unwrap_or("unknown processor"),
        field(&memory, "MemTotal").unwrap_or("unknown"),
        load.split(' ').next().unwrap_or("unknown"),
    )
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| Some(line.strip_prefix(name)?.trim_start().strip_prefix(':')?.trim()))
}
