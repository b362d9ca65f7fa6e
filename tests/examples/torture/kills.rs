//! SIGKILL of each writing command at a random moment: what was there before stays whole, and the same command then succeeds.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use counterproof_tests::Sandbox;
use serde_json::Value;

use crate::attempt::{Attempt, Fault, Outcome, ensure};
use crate::prepared::{self, CASES, agent, prepare, safe_run_in};
use crate::process::{Ended, Running, finish};
use crate::snapshot::{Snapshot, leftovers};

/// A command that replaces a folder, or creates one.
pub(crate) struct Writer {
    pub(crate) name: &'static str,
    /// The command that makes the old folder; empty if no folder is replaced.
    old: &'static [&'static str],
    /// The command under attack.
    pub(crate) new: &'static [&'static str],
    /// The folder that it writes.
    pub(crate) target: &'static str,
    /// Whether the files of a whole folder are always the same bytes. Otherwise it is validated.
    is_reproducible: bool,
}

/// The writers of folders. `RECORD` is the log of the recorded command.
pub(crate) const WRITERS: [Writer; 6] = [
    Writer {
        name: "compare",
        old: &["compare", "runs/baseline/b1", "runs/new/n1", "--out", "out/report"],
        new: &["compare", "runs/baseline/b1", "runs/new/n2", "--allow-unpaired", "--out", "out/report"],
        target: "out/report",
        is_reproducible: true,
    },
    Writer {
        name: "report",
        old: &["compare", "runs/baseline/b1", "runs/new/n2", "--allow-unpaired", "--out", "out/page"],
        new: &["report", "evaluated/evaluation.json", "--out", "out/page"],
        target: "out/page",
        is_reproducible: true,
    },
    Writer {
        name: "history",
        old: &["history", "evaluated", "--out", "out/history"],
        new: &["history", "evaluated", "runs/new/n1", "--out", "out/history"],
        target: "out/history",
        is_reproducible: true,
    },
    Writer {
        name: "accept",
        old: &[],
        new: &["accept", "runs/new/n1", "--reason", "good", "--allow-failures"],
        target: "runs/baseline/n1",
        is_reproducible: false,
    },
    Writer {
        name: "merge",
        old: &[],
        new: &["merge", "--out", "runs/new/whole", "runs/new/part-s1of2", "runs/new/part-s2of2"],
        target: "runs/new/whole",
        is_reproducible: false,
    },
    Writer {
        name: "export-run",
        old: &[],
        new: &["export-run", "--side", "new", "--run-id", "exported", "RECORD"],
        target: "runs/new/exported",
        is_reproducible: false,
    },
];

/// What a writer makes when nothing disturbs it.
#[derive(Clone, Default)]
pub(crate) struct Reference {
    pub(crate) old: Snapshot,
    pub(crate) new: Snapshot,
    code: i32,
    takes: Duration,
}

pub(crate) fn run(attempt: &mut Attempt) -> Outcome {
    prepare(&attempt.sandbox)?;
    match attempt.random.usize(..WRITERS.len() + 3) {
        0 => kill_archive(attempt),
        1 => kill_safe_run(attempt),
        2 => kill_run(attempt),
        at => kill_writer(attempt, &WRITERS[at - 3]),
    }
}

fn kill_writer(attempt: &mut Attempt, writer: &Writer) -> Outcome {
    let reference = reference(writer)?;
    let sandbox = &attempt.sandbox;
    writer.make_old(sandbox)?;
    for _ in 0..attempt.random.u32(1..4) {
        let at = reference.takes.mul_f64(attempt.random.f64() * 1.2);
        let killed = Running::start(writer.command(sandbox)?)?.kill_after(at)?;
        writer.is_whole(sandbox, &reference, &killed)?;
    }
    writer.succeeds(sandbox, &reference)
}

impl Writer {
    pub(crate) fn command(&self, sandbox: &Sandbox) -> Result<std::process::Command, Fault> {
        let record = prepared::record(sandbox.root().as_std_path())?;
        Ok(sandbox
            .command(self.new.iter().map(|argument| if *argument == "RECORD" { record.as_str() } else { argument })))
    }

    pub(crate) fn make_old(&self, sandbox: &Sandbox) -> Outcome {
        if self.old.is_empty() { Ok(()) } else { finish(sandbox.command(self.old))?.ended_properly() }
    }

    fn target(&self, sandbox: &Sandbox) -> camino::Utf8PathBuf {
        sandbox.path(self.target)
    }

    /// The target is the old folder, the new one, or absent if there was none.
    pub(crate) fn is_whole(&self, sandbox: &Sandbox, reference: &Reference, ended: &Ended) -> Outcome {
        let target = self.target(sandbox);
        if !target.exists() {
            ensure!(self.old.is_empty(), "{}: the old folder is gone: {}", self.name, ended.stderr);
            return Ok(());
        }
        if self.is_reproducible {
            let found = Snapshot::of(target.as_std_path())?;
            let difference = found.difference(&reference.new);
            ensure!(
                found == reference.old || found == reference.new,
                "{}: neither the old nor the new folder; to the new one {difference}: {}",
                self.name,
                ended.stderr
            );
            return Ok(());
        }
        finish(sandbox.command(["validate", target.as_str()]))?.has_code(0)
    }

    /// The command succeeds now, or had succeeded before, and leaves nothing behind.
    pub(crate) fn succeeds(&self, sandbox: &Sandbox, reference: &Reference) -> Outcome {
        let is_done = !self.is_reproducible && self.target(sandbox).exists();
        let again = finish(self.command(sandbox)?)?;
        again.has_code(if is_done { 2 } else { reference.code })?;
        self.is_whole(sandbox, reference, &again)?;
        if self.is_reproducible {
            let found = Snapshot::of(self.target(sandbox).as_std_path())?;
            ensure!(found == reference.new, "{}: not the new folder: {}", self.name, found.difference(&reference.new));
        }
        // A command that refuses since its target exists has nothing to clean up for.
        if !is_done {
            let left = leftovers(sandbox.root().as_std_path())?;
            ensure!(left.is_empty(), "{} leaves {left:?}", self.name);
        }
        Ok(())
    }
}

/// Runs a writer undisturbed, once for all attempts.
pub(crate) fn reference(writer: &Writer) -> Result<Reference, Fault> {
    static KNOWN: Mutex<Option<HashMap<&'static str, Reference>>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(reference) = known.get_or_insert_default().get(writer.name) {
        return Ok(reference.clone());
    }
    let sandbox = Sandbox::new();
    prepare(&sandbox)?;
    writer.make_old(&sandbox)?;
    let old = Snapshot::of(writer.target(&sandbox).as_std_path())?;
    let start = Instant::now();
    let ended = finish(writer.command(&sandbox)?)?;
    let takes = start.elapsed();
    ended.ended_properly()?;
    let new = Snapshot::of(writer.target(&sandbox).as_std_path())?;
    ensure!(!new.is_empty() && new != old, "{} writes nothing: {}", writer.name, ended.stderr);
    let reference = Reference { old, new, code: ended.code.unwrap_or_default(), takes };
    known.get_or_insert_default().insert(writer.name, reference.clone());
    Ok(reference)
}

/// Kills a run, possibly several times while it is resumed. No case whose end was reported is asked again.
fn kill_run(attempt: &mut Attempt) -> Outcome {
    let (sandbox, url) = (&attempt.sandbox, agent().base_url());
    let line = |last: [&str; 2]| {
        let fixed = ["run", "--cases", "cases.json", "--side", "new", "--base-url", &url, "--reporter", "jsonl"];
        sandbox.command(fixed.into_iter().chain(["--concurrency", "4"]).chain(last))
    };
    let folder = sandbox.path("runs/new/killed");
    let continued = || if folder.exists() { ["--resume", "killed"] } else { ["--run-id", "killed"] };
    let mut finished = 0;
    for _ in 0..attempt.random.u32(1..4) {
        let at = Duration::from_millis(attempt.random.u64(..150));
        let killed = Running::start(line(continued()))?.kill_after(at)?;
        finished += killed.stdout.lines().filter(|line| is_finished(line)).count();
        only_whole_documents(folder.as_std_path())?;
    }
    let before = requests_at_rest();
    finish(line(continued()))?.has_code(0)?;
    let asked = agent().requests().len() - before;
    ensure!(
        asked + finished <= CASES,
        "{finished} cases were reported as finished, and {asked} of {CASES} asked again"
    );
    finish(sandbox.command(["validate", folder.as_str()]))?.has_code(0)?;
    let left = leftovers(folder.as_std_path())?;
    ensure!(left.is_empty(), "run leaves {left:?}");
    Ok(())
}

/// The number of requests that the agent has received, once no request of a killed runner is on its way any more.
fn requests_at_rest() -> usize {
    let mut before = agent().requests().len();
    loop {
        std::thread::sleep(Duration::from_millis(50));
        let now = agent().requests().len();
        if now == before {
            return now;
        }
        before = now;
    }
}

fn is_finished(line: &str) -> bool {
    serde_json::from_str::<Value>(line).is_ok_and(|event| event["type"] == "case_finished")
}

/// Every JSON file below a folder parses, except temporary ones.
fn only_whole_documents(folder: &Path) -> Outcome {
    for entry in walkdir::WalkDir::new(folder).into_iter().filter(|_| folder.exists()) {
        let entry = entry.map_err(std::io::Error::from)?;
        let name = entry.file_name().to_string_lossy();
        if entry.file_type().is_file() && name.ends_with(".json") && !name.starts_with(".tmp-") {
            let bytes = std::fs::read(entry.path())?;
            let is_whole = serde_json::from_slice::<Value>(&bytes).is_ok();
            ensure!(is_whole, "{} is torn", entry.path().display());
        }
    }
    Ok(())
}

/// Kills safe-run while it records a command that fails. The next call leaves no unfinished record.
fn kill_safe_run(attempt: &mut Attempt) -> Outcome {
    let sandbox = &attempt.sandbox;
    let command = || safe_run_in(sandbox, &["sh", "-c", "seq 20000; exit 3"]);
    for _ in 0..attempt.random.u32(1..4) {
        Running::start(command())?.kill_after(Duration::from_millis(attempt.random.u64(..80)))?;
    }
    let whole = finish(command())?;
    whole.has_code(3)?;
    let logs = sandbox.path(".agent/FAIL-LOGS");
    let left = leftovers(logs.as_std_path())?;
    ensure!(left.is_empty(), "safe-run leaves {left:?}");
    for (number, log) in std::fs::read_dir(&logs)?.enumerate() {
        let (path, run_id) = (log?.path(), format!("log{number}"));
        let path = path.to_string_lossy();
        // A record is exported only if it is complete.
        finish(sandbox.command(["export-run", "--side", "new", "--run-id", &run_id, &path]))?.has_code(0)?;
    }
    Ok(())
}

/// Kills `safe-run archive`. The archive is absent or whole.
fn kill_archive(attempt: &mut Attempt) -> Outcome {
    let sandbox = &attempt.sandbox;
    let archive = |name: &str| safe_run_in(sandbox, &["archive", "--no-clobber", "runs", name]);
    let name = ["runs.tar.gz", "runs.tar.bz2", "runs.zip"][attempt.random.usize(..3)];
    let start = Instant::now();
    finish(archive(&format!("whole-{name}")))?.has_code(0)?;
    let takes = start.elapsed();
    Running::start(archive(name))?.kill_after(takes.mul_f64(attempt.random.f64() * 1.2))?;
    let path = sandbox.path(name);
    let was_written = path.exists();
    let again = finish(archive(name))?;
    ensure!(again.code == Some(0) || was_written, "archive fails after a kill: {}", again.stderr);
    let sizes =
        [path, sandbox.path(&format!("whole-{name}"))].map(|path| std::fs::metadata(path).map(|found| found.len()));
    let [Ok(killed), Ok(whole)] = sizes else { return Err(Fault::new("an archive is absent")) };
    // Other times in the headers compress to a few other bytes.
    ensure!(killed.abs_diff(whole) < 512, "{name} has {killed} instead of {whole} bytes");
    let left = leftovers(sandbox.root().as_std_path())?;
    ensure!(left.is_empty(), "archive leaves {left:?}");
    Ok(())
}
