//! `kill -9` at every step of `contract run` leaves a whole store, and the next run continues.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use camino::Utf8Path;
use counterproof_contracts::store::Record;
use counterproof_contracts::{ContractKey, State, Store};
use counterproof_tests::Sandbox;
use serde_json::{Value, json};

/// How long one step may take before the test fails.
const PATIENCE: Duration = Duration::from_mins(1);

/// An agent and a check that take long enough to be killed in between.
const SLOW: &str = "sleep 0.2";

fn sandbox(check: &str, rollback: &Value) -> Sandbox {
    let contract = json!({
        "id": "a", "version": 1, "created_at": "2026-01-31T12:00:00Z",
        "input": {"type": "task", "data": {}}, "output": {"type": "result", "schema": {"ok": "boolean"}},
        "verification": {"command": format!("{SLOW}; {check}")},
        "rollback": rollback
    });
    let sandbox = Sandbox::new().with_file("a.json", &contract.to_string()).with_file("tracked.txt", "before");
    let sandbox = sandbox.with_file(".gitignore", ".counterproof/\nlocks/\nruns/\n");
    for arguments in [&["init", "--quiet"][..], &["add", "--all"], &["commit", "--quiet", "--message", "start"]] {
        let mut git = Command::new("git");
        git.args(arguments).current_dir(sandbox.root()).env("GIT_CONFIG_GLOBAL", "/dev/null");
        for role in ["AUTHOR", "COMMITTER"] {
            git.env(format!("GIT_{role}_NAME"), "Test").env(format!("GIT_{role}_EMAIL"), "test@localhost");
        }
        assert!(git.status().unwrap().success(), "{arguments:?}");
    }
    let locks = sandbox.path("locks").to_string();
    let sandbox = sandbox.with_variable("COUNTERPROOF_LOCKS", &locks);
    let added = sandbox.run(["contract", "add", "a.json"]);
    assert_eq!(added.code, Some(0), "{added}");
    sandbox
}

fn custom() -> Value {
    json!({"strategy": "custom", "custom": SLOW})
}

fn start(sandbox: &Sandbox) -> Child {
    let agent = format!("echo work > tracked.txt; echo work > new.txt; {SLOW}; echo '{{\"ok\": true}}'");
    sandbox
        .command(["contract", "run", "a", "--agent-cmd", &agent])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn lines(path: &Utf8Path) -> usize {
    std::fs::read_to_string(path).unwrap().matches('\n').count()
}

/// Waits until the store has this many lines, or the run has ended. Returns whether it has them.
fn wait_for_line(path: &Utf8Path, wanted: usize, run: &mut Child) -> bool {
    let started = Instant::now();
    loop {
        if lines(path) >= wanted {
            return true;
        }
        if run.try_wait().unwrap().is_some() {
            return lines(path) >= wanted;
        }
        assert!(started.elapsed() < PATIENCE, "line {wanted} was never written");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn state(path: &Utf8Path) -> State {
    let store = Store::open(path).unwrap();
    let key: ContractKey = "a".parse().unwrap();
    store.version(&key).unwrap().state()
}

/// Kills a run after each of its lines, and continues until the contract has ended.
fn kill_after_every_line(check: &str, rollback: &Value, ended: State) {
    let mut killed = 0;
    for line in 3.. {
        let sandbox = sandbox(check, rollback);
        let path = sandbox.path(".counterproof/contracts.jsonl");
        assert_eq!(lines(&path), 2, "the contract, and that it is ready");
        let mut run = start(&sandbox);
        if !wait_for_line(&path, line, &mut run) {
            break;
        }
        run.kill().unwrap();
        run.wait().unwrap();
        killed += 1;
        let whole = std::fs::read(&path).unwrap();
        assert!(whole.split(|byte| *byte == b'\n').all(|line| line.is_empty() || Record::parse(line).is_ok()));
        // The first continuation may only complete what the killed run began, such as its rollback.
        for _ in 0..2 {
            if !state(&path).is_terminal() {
                start(&sandbox).wait().unwrap();
            }
        }
        assert_eq!(state(&path), ended, "killed after line {line}");
        let is_undone = rollback["strategy"] == "git_reset" && ended == State::RolledBack;
        let tracked = std::fs::read_to_string(sandbox.path("tracked.txt")).unwrap();
        assert_eq!(tracked, if is_undone { "before" } else { "work\n" }, "killed after line {line}");
        assert_eq!(sandbox.path("new.txt").exists(), !is_undone, "killed after line {line}");
    }
    assert!(killed >= 4, "{killed}");
}

#[test]
fn a_run_that_is_killed_at_any_step_is_completed_by_the_next() {
    kill_after_every_line("true", &custom(), State::Completed);
}

#[test]
fn a_failing_run_that_is_killed_at_any_step_ends_rolled_back() {
    kill_after_every_line("exit 3", &custom(), State::RolledBack);
}

#[test]
fn the_work_of_a_failing_run_that_is_killed_at_any_step_is_undone() {
    kill_after_every_line("exit 3", &json!({"strategy": "git_reset"}), State::RolledBack);
}

#[test]
fn the_commands_of_a_killed_run_end_with_it() {
    let sandbox = sandbox("touch checked", &custom());
    let path = sandbox.path(".counterproof/contracts.jsonl");
    let agent = format!("echo $$ > agent.pid; sleep 300; {SLOW}");
    let mut run = sandbox
        .command(["contract", "run", "a", "--agent-cmd", &agent])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert!(wait_for_line(&path, 4, &mut run));
    let started = Instant::now();
    let pid = loop {
        let text = std::fs::read_to_string(sandbox.path("agent.pid")).unwrap_or_default();
        match text.trim().parse::<i32>() {
            Ok(pid) => break pid,
            Err(_) => assert!(started.elapsed() < PATIENCE, "the agent was never started"),
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    run.kill().unwrap();
    run.wait().unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    while rustix::process::test_kill_process(pid).is_ok() {
        assert!(started.elapsed() < PATIENCE, "the agent still runs");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(!sandbox.path("checked").exists());
}
