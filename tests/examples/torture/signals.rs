//! Signals to safe-run and to a run: both end, with a record or with a run that can be resumed.

use std::process::Command;
use std::thread;
use std::time::Duration;

use counterproof_tests::safe_run;
use rustix::process::Signal;

use crate::attempt::{Attempt, Outcome, ensure};
use crate::prepared::{agent, prepare};
use crate::process::{Running, finish};

/// Signals that safe-run handles or passes on. `docs/safe-run.md` lists the others.
const SIGNALS: [Signal; 13] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::TERM,
    Signal::USR1,
    Signal::USR2,
    Signal::ALARM,
    Signal::VTALARM,
    Signal::PROF,
    Signal::XCPU,
    Signal::CONT,
    Signal::WINCH,
    Signal::CHILD,
];

/// Commands that end by themselves, each after it has created `started`.
const SCRIPTS: [&str; 4] = [
    ": > started; echo begun; sleep 0.2; echo ended; exit 7",
    ": > started; trap 'echo trapped; exit 9' TERM INT USR1; sleep 0.2; exit 3",
    ": > started; trap '' TERM HUP USR2; seq 2000; sleep 0.2; exit 1",
    ": > started; sleep 0.3 & seq 500 >&2; wait; exit 5",
];

pub(crate) fn run(attempt: &mut Attempt) -> Outcome {
    prepare(&attempt.sandbox)?;
    if attempt.random.u8(..3) == 0 { signal_run(attempt) } else { signal_safe_run(attempt) }
}

/// Sends some signals at random moments.
fn send(attempt: &mut Attempt, running: &Running, signals: &[Signal], within_ms: u64) {
    for _ in 0..attempt.random.u32(1..5) {
        thread::sleep(Duration::from_millis(attempt.random.u64(..within_ms)));
        let signal = signals[attempt.random.usize(..signals.len())];
        running.send(signal);
    }
}

fn signal_safe_run(attempt: &mut Attempt) -> Outcome {
    let script = SCRIPTS[attempt.random.usize(..SCRIPTS.len())];
    let logs = attempt.sandbox.path("logs");
    let mut command = Command::new("env");
    // The attack itself may have been started with some of them ignored.
    command.arg("--default-signal").arg(safe_run()).args(["--grace", "1", "--drain", "1", "sh", "-c", script]);
    command.current_dir(attempt.sandbox.root()).env("SAFE_LOG_DIR", &logs);
    let running = Running::start(command)?;
    send(attempt, &running, &SIGNALS, 150);
    let ended = running.wait()?;
    if !attempt.sandbox.path("started").exists() {
        // It was signalled before it had started the command.
        return Ok(());
    }
    ensure!(ended.code.is_some(), "safe-run died of signal {:?}: {}", ended.signal, ended.stderr);
    ensure!(ended.code != Some(125), "safe-run failed: {}", ended.stderr);
    let records: Vec<_> = std::fs::read_dir(&logs).map(|found| found.flatten().collect()).unwrap_or_default();
    ensure!(records.len() == 1, "code {:?} and {} records: {}", ended.code, records.len(), ended.stderr);
    let path = records[0].path();
    let path = path.to_string_lossy();
    finish(attempt.sandbox.command(["export-run", "--side", "new", "--run-id", "e1", &path]))?.has_code(0)
}

fn signal_run(attempt: &mut Attempt) -> Outcome {
    let url = agent().base_url();
    let line = |last: [&str; 2]| {
        let fixed = ["run", "--cases", "cases.json", "--side", "new", "--base-url", &url, "--concurrency", "2"];
        attempt.sandbox.command(fixed.into_iter().chain(last))
    };
    let running = Running::start(line(["--run-id", "stopped"]))?;
    send(&mut Attempt::new(attempt.random.u64(..), "signals of run", 0), &running, &[Signal::INT, Signal::TERM], 120);
    let ended = running.wait()?;
    // Before the program handles them, the signals have their default effect.
    let is_proper = ended.code.is_none_or(|code| [0, 3, 4].contains(&code));
    ensure!(is_proper, "run ended with code {:?}: {}", ended.code, ended.stderr);
    let has_started = attempt.sandbox.path("runs/new/stopped").exists();
    ensure!(ended.code.is_some() || !has_started, "run died of signal {:?} after its start", ended.signal);
    finish(line([if has_started { "--resume" } else { "--run-id" }, "stopped"]))?.has_code(0)?;
    finish(attempt.sandbox.command(["validate", "runs/new/stopped"]))?.has_code(0)
}
