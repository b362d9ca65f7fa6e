//! What the benchmarks share: their arguments, the measured programs, figures of the machine and of this process, and the
//! measurement on a corpus of real runs.
//!
//! Figures are comparable within one run only: a benchmark measures its floors and its subjects in turns, and prints ratios.

pub mod corpus;

use std::error::Error;
use std::fs;
use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};

/// The result of a benchmark.
pub type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// The unit of times in `/proc`: Linux fixes it for programs.
const TICKS_PER_SECOND: f64 = 100.0;

/// Returns the arguments after `--`. Cargo adds `--bench`, which is a flag for test harnesses.
pub fn arguments() -> Vec<String> {
    std::env::args().skip(1).filter(|argument| argument != "--bench").collect()
}

/// Builds a program in release mode, and returns its path.
///
/// # Errors
/// If cargo cannot be started, or the build fails.
pub fn release_program(package: &str, name: &str) -> Outcome<Utf8PathBuf> {
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--release", "--locked", "--package", package, "--bin", name]);
    if !build.current_dir(root()).status()?.success() {
        return Err(format!("{name} could not be built").into());
    }
    Ok(target_folder().join("release").join(format!("{name}{}", std::env::consts::EXE_SUFFIX)))
}

/// Returns the build folder, which lies on a disk. The temporary folder of the system is often in memory.
pub fn target_folder() -> Utf8PathBuf {
    let target = std::env::var("CARGO_TARGET_DIR").map_or_else(|_| "target".into(), Utf8PathBuf::from);
    root().join(target)
}

/// Returns the root of the workspace.
pub fn root() -> &'static Utf8Path {
    let here = Utf8Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// Returns processor, cores, memory and load in one line. Only Linux reports all of them.
pub fn machine() -> String {
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

/// Returns the processor time of this process and all its threads, in the program and in the system, in seconds. Linux only.
pub fn cpu_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program comes second, in brackets, and can contain brackets and spaces.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let ticks = |text: Option<&str>| text?.parse::<u64>().ok();
    Some((ticks(fields.next())? + ticks(fields.next())?) as f64 / TICKS_PER_SECOND)
}

/// Returns the peak memory of this process in MiB. Linux only.
pub fn peak_memory() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kib: f64 = field(&status, "VmHWM")?.trim_end_matches(" kB").parse().ok()?;
    Some(kib / 1024.0)
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| Some(line.strip_prefix(name)?.trim_start().strip_prefix(':')?.trim()))
}
