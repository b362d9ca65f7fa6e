//! The cost of `safe-run`. There is no limit to pass. The compared commands run in turns under the same load, so only the
//! ratios are meaningful.

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::fs;
use std::io;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use camino::Utf8Path;
use counterproof_bench::{Outcome, machine, release_program};

/// Runs of a command that does nothing.
const RUNS: usize = 400;

/// Output in bytes, in lines of 100 bytes. One file of a tenth of the size is read ten times.
const BYTES: usize = 1_000_000_000;
const TIMES: usize = 10;

/// Repetitions of the output measurement.
const PASSES: usize = 5;

fn main() -> Outcome {
    println!("machine: {}", machine());
    let program = release_program("counterproof-safe-run", "safe-run")?;
    let scratch = tempfile::tempdir()?;
    let folder = Utf8Path::from_path(scratch.path()).ok_or("the path of the temporary folder is not UTF-8")?;
    starts(&program, folder)?;
    output(&program, folder)?;
    Ok(())
}

/// Measures the start of a command that does nothing, bare and recorded.
fn starts(program: &Utf8Path, folder: &Utf8Path) -> io::Result<()> {
    let (mut bare, mut version, mut recorded, mut added) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let without = time(Command::new("/bin/true").current_dir(folder))?;
        let with = time(Command::new(program).arg("/bin/true").current_dir(folder))?;
        version.push(time(Command::new(program).arg("--version").current_dir(folder))?);
        added.push(with.saturating_sub(without));
        bare.push(without);
        recorded.push(with);
    }
    println!("/bin/true, {RUNS} times in turns         median    fastest tenth");
    let all = [
        ("bare", bare),
        ("safe-run --version (one start)", version),
        ("safe-run /bin/true", recorded),
        ("added, pair by pair", added),
    ];
    for (name, times) in all {
        let [tenth, half] = quantiles(times);
        println!("  {name:<32} {:>8.2} ms {:>10.2} ms", milliseconds(half), milliseconds(tenth));
    }
    Ok(())
}

/// Measures a gigabyte through `cat`, and through safe-run with and without a log.
fn output(program: &Utf8Path, folder: &Utf8Path) -> io::Result<()> {
    let file = "lines";
    #[expect(clippy::disallowed_methods, reason = "a temporary file of this measurement need not survive a crash")]
    fs::write(folder.join(file), [&[b'x'; 99][..], b"\n"].concat().repeat(BYTES / TIMES / 100))?;
    let ways = ["into cat", "through safe-run, no log", "through safe-run, with its log"];
    let mut times = [const { Vec::new() }; 3];
    let mut memory = [0; 3];
    for _ in 0..PASSES {
        times[0].push(through_cat(file, folder)?);
        for (way, code) in [(1, 0), (2, 1)] {
            let (took, peak) = through_safe_run(program, file, folder, code)?;
            times[way].push(took);
            memory[way] = memory[way].max(peak);
        }
    }
    println!("{BYTES} bytes in lines of 100, {PASSES} times in turns");
    println!("                                       median       best   of cat    peak memory");
    let mut cat = 0.0;
    for ((way, times), memory) in ways.into_iter().zip(times).zip(memory) {
        let best = times.iter().copied().min().unwrap_or_default();
        let median = rate(quantiles(times)[1]);
        if way == ways[0] {
            cat = median;
        }
        let memory = if memory == 0 { String::new() } else { format!("{:>8.1} MiB", memory as f64 / 1024.0) };
        let (best, of_cat) = (rate(best), median / cat);
        println!("  {way:<32} {median:>5.0} MB/s {best:>5.0} MB/s {of_cat:>7.2} {memory}");
    }
    Ok(())
}

fn time(command: &mut Command) -> io::Result<Duration> {
    let start = Instant::now();
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status()?;
    let took = start.elapsed();
    if status.success() { Ok(took) } else { Err(io::Error::other(format!("{command:?} exited with {status}"))) }
}

fn through_cat(file: &str, folder: &Utf8Path) -> io::Result<Duration> {
    let start = Instant::now();
    let mut source = Command::new("cat").args([file; TIMES]).current_dir(folder).stdout(Stdio::piped()).spawn()?;
    let pipe = source.stdout.take().map_or_else(Stdio::null, Stdio::from);
    let status = Command::new("cat").stdin(pipe).stdout(Stdio::null()).status()?;
    if status.success() && source.wait()?.success() { Ok(start.elapsed()) } else { Err(io::Error::other("cat failed")) }
}

/// Returns the duration until safe-run exits and the peak memory of its largest process, in KiB.
fn through_safe_run(program: &Utf8Path, file: &str, folder: &Utf8Path, code: i32) -> io::Result<(Duration, u64)> {
    let script = format!("cat \"$@\"; exit {code}");
    let mut command = Command::new(program);
    command.args(["sh", "-c", &script, "sh"]).args([file; TIMES]).current_dir(folder);
    let start = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let mut memory = 0;
    let status = loop {
        memory = memory.max(peak(&child));
        match child.try_wait()? {
            Some(status) => break status,
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let took = start.elapsed();
    if status.code() != Some(code) {
        return Err(io::Error::other(format!("safe-run exited with {status}")));
    }
    let logs = folder.join(".agent");
    if logs.exists() {
        fs::remove_dir_all(logs)?;
    }
    Ok((took, memory))
}

/// Returns the peak memory so far of safe-run or its supervisor, whichever is larger, in KiB.
fn peak(child: &Child) -> u64 {
    let id = child.id();
    let below = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    let supervisor = below.split_whitespace().next().and_then(|id| id.parse().ok());
    let of = |id: u32| {
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
        line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
    };
    of(id).max(supervisor.map_or(0, of))
}

/// Returns the 10 % quantile and the median.
fn quantiles(mut times: Vec<Duration>) -> [Duration; 2] {
    times.sort_unstable();
    [times.len() / 10, times.len() / 2].map(|index| times.get(index).copied().unwrap_or_default())
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn rate(time: Duration) -> f64 {
    BYTES as f64 / 1e6 / time.as_secs_f64()
}
