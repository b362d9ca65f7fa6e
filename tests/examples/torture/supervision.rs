//! Commands that stop or kill their supervisor at random moments: safe-run and a run end after a limit or a signal, and no process of
//! the command is left.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use counterproof_tests::safe_run;
use rustix::process::Signal;

use crate::attempt::{Attempt, Fault, Outcome, ensure};
use crate::process::Running;
use crate::snapshot::write;

/// What the command or one of its processes does to the supervisor, `$s`.
const ATTACKS: [&str; 5] = [
    "kill -STOP $s",
    "while kill -STOP $s; do :; done",
    "while kill -STOP $s && kill -CONT $s; do :; done",
    "while kill -STOP $s; do sleep 0.01; done",
    "kill -STOP $s; kill -KILL $s",
];

/// What the command does with signals.
const TRAPS: [&str; 3] = ["", "trap '' TERM HUP INT", "trap 'exit 9' TERM"];

/// How long processes without their supervisor may take to end after KILL.
const ENDED_AFTER: Duration = Duration::from_secs(10);

pub(crate) fn run(attempt: &mut Attempt) -> Outcome {
    // Found again by this word. A process that is left would sleep for months.
    let sleep = format!("9{:06}.{:03}", std::process::id(), attempt.number() % 1000);
    let script = script(attempt, &sleep);
    if attempt.random.bool() {
        stop_safe_run(attempt, &script)?;
    } else {
        stop_run(attempt, &script)?;
    }
    let start = Instant::now();
    while let Some(left) = process_with(&sleep) {
        if start.elapsed() > ENDED_AFTER {
            let _ = Command::new("kill").args(["-KILL", &left.to_string()]).status();
            return Err(Fault::new(format!("process {left} is left of: {script}")));
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn script(attempt: &mut Attempt, sleep: &str) -> String {
    let random = &mut attempt.random;
    let trap = TRAPS[random.usize(..TRAPS.len())];
    // The last attack ends the supervisor. `setsid` processes survive that in `run`, as `docs/safe-run.md` states.
    let mut background = String::new();
    for _ in 0..random.usize(..3) {
        let attack = ATTACKS[random.usize(..ATTACKS.len() - 1)];
        let _ = write!(background, "setsid sh -c 'trap \"\" TERM; {attack}; exec sleep {sleep}' & ");
    }
    let attacks = if background.is_empty() { ATTACKS.len() } else { ATTACKS.len() - 1 };
    let attack = ATTACKS[random.usize(..attacks)];
    let pause = random.u32(..50);
    format!(
        "s=$PPID; export s; {trap}\n: > started; {background}\nsleep 0.0{pause:02}; {attack} & {attack}; sleep {sleep}"
    )
}

fn stop_safe_run(attempt: &mut Attempt, script: &str) -> Outcome {
    let mut command = Command::new("env");
    // The attack itself may have been started with some of them ignored.
    command.arg("--default-signal").arg(safe_run()).args(["--grace", "0.2", "--drain", "0.2", "sh", "-c", script]);
    command.current_dir(attempt.sandbox.root());
    let running = Running::start(command)?;
    let start = Instant::now();
    while !attempt.sandbox.path("started").exists() && start.elapsed() < ENDED_AFTER {
        thread::sleep(Duration::from_millis(2));
    }
    thread::sleep(Duration::from_millis(attempt.random.u64(..120)));
    running.send([Signal::TERM, Signal::INT, Signal::HUP][attempt.random.usize(..3)]);
    let ended = running.wait()?;
    ensure!(ended.code.is_some_and(|code| code != 0 && code != 125), "safe-run ended with {ended:?}: {script}");
    Ok(())
}

fn stop_run(attempt: &mut Attempt, script: &str) -> Outcome {
    let root = attempt.sandbox.root().as_std_path();
    write(&root.join("agent.sh"), script.as_bytes())?;
    write(&root.join("one.json"), br#"[{"id": "a", "input": {"user": "go"}}]"#)?;
    let fixed = ["run", "--cases", "one.json", "--side", "new", "--run-id", "r", "--agent-cmd", "sh agent.sh"];
    let limits = ["--timeout", "300ms", "--retries", "0"];
    let ended = Running::start(attempt.sandbox.command(fixed.iter().chain(&limits)))?.wait()?;
    // No command answers, so no case has an answer.
    ensure!(matches!(ended.code, Some(1 | 3)), "run ended with {ended:?}: {script}");
    Ok(())
}

/// Returns a running process that has this word as an argument.
fn process_with(word: &str) -> Option<i32> {
    let processes = fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_found = |process: &i32| {
        let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|argument| String::from_utf8_lossy(argument).contains(word))
    };
    let mut found = processes.filter(is_found);
    found.find(|process| *process != std::process::id().cast_signed())
}
