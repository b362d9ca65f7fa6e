//! `kill -9` at every step of `contract run` leaves a whole store, and the next run continues; rollbacks restore the files.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use camino::Utf8Path;
use counterproof_contracts::store::Record;
use counterproof_contracts::{ContractKey, State, Store};
use counterproof_tests::Sandbox;
use serde_json::{Value, json};

use crate::contract_kit::{BAD, GOOD, Project, simple};

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
    let store = Store::new(path);
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

#[test]
fn the_work_of_an_agent_on_its_own_is_rolled_back_to_where_it_began() {
    let project = Project::new();
    let mut contract = simple("a", &[]);
    contract["rollback"] = json!({"strategy": "git_reset"});
    project.add(&contract);
    project.put(".counterproof/out.json", "{\"ok\": false}");
    assert_eq!(project.contract(&["claim", "a", "--owner", "claude"]).code, Some(0));
    let start = ["transition", "a", "--to", "executing", "--actor", "agent:claude", "--reason", "go", "--workdir", "."];
    assert_eq!(project.contract(&start).code, Some(0));
    project.put("work.txt", "work");
    let failed = project.contract(&["run", "a", "--output", ".counterproof/out.json", "--owner", "claude"]);
    assert_eq!((failed.code, project.state("a").as_str()), (Some(1), "rolled_back"), "{failed}");
    assert!(failed.stderr.contains("rolled back: discarded 1 new file"), "{failed}");
    assert!(!project.sandbox.path("work.txt").exists());
    let history = project.json(&["history", "a"]);
    let failed = &history["versions"][0]["events"][4]["transition"]["details"]["verification"];
    assert_eq!(failed["changes"]["files"], 1, "{failed}");
}

#[test]
fn a_contract_that_could_not_be_rolled_back_is_not_run() {
    let project = Project::new();
    let mut contract = simple("a", &[]);
    contract["rollback"] = json!({"strategy": "git_reset"});
    project.add(&contract);
    project.put(".gitignore", "changed, and not committed\n");
    let plan = project.contract(&["run", "a", "--agent-cmd", GOOD, "--dry-run"]);
    assert!(plan.code == Some(1) && plan.stdout.contains("commit or stash them"), "{plan}");
    let refused = project.contract(&["run", "a", "--agent-cmd", "touch ran; echo '{}'"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("commit or stash them"), "{refused}");
    assert!(!project.sandbox.path("ran").exists(), "the agent did not run");
    assert_eq!(project.contract(&["run", "a", "--agent-cmd", GOOD, "--no-rollback"]).code, Some(0));
}

#[test]
fn an_interrupted_run_ends_with_4_and_continues() {
    let project = Project::new();
    project.add(&simple("a", &[]));
    project.add(&simple("b", &["a"]));
    assert_eq!(project.interrupt(&["--all", "--agent-cmd", "touch started; sleep 300"], "started"), Some(4));
    assert_eq!(project.state("a"), "failed");
    let finished = project.contract(&["run", "--all", "--agent-cmd", GOOD]);
    assert_eq!((finished.code, project.state("b").as_str()), (Some(0), "completed"), "{finished}");
}

#[test]
fn an_output_file_that_cannot_be_used_fails_no_contract_and_undoes_nothing() {
    let project = Project::new();
    let mut contract = simple("a", &[]);
    contract["rollback"] = json!({"strategy": "custom", "custom": "rm -f work.txt"});
    project.add(&contract);
    project.add(&simple("b", &[]));
    project.put("work.txt", "good work");
    project.put("broken.json", "{\"ok\": tru}");
    for (file, message) in [("typo.json", "cannot be read"), ("broken.json", "is not one JSON value")] {
        let run = project.contract(&["run", "a", "--output", file]);
        assert!(run.code == Some(2) && run.stderr.contains(message), "{run}");
    }
    assert_eq!(project.state("a"), "ready");
    assert!(project.sandbox.path("work.txt").exists());
    project.put("out.json", "{\"ok\": true}");
    let shared = project.contract(&["run", "a", "b", "--output", "out.json"]);
    assert!(shared.code == Some(2) && shared.stderr.contains("of several contracts"), "{shared}");
}

#[test]
fn work_that_was_done_before_the_run_is_not_rolled_back_and_a_person_decides() {
    let project = Project::new();
    let mut contract = simple("a", &[]);
    contract["rollback"] = json!({"strategy": "git_reset"});
    project.add(&contract);
    project.put("work.txt", "failed work");
    project.put(".counterproof/out.json", "{\"ok\": false}");
    let failed = project.contract(&["run", "a", "--output", ".counterproof/out.json"]);
    assert!(failed.code == Some(1) && failed.stderr.contains("rollback refused: the work was done before"), "{failed}");
    assert_eq!(project.state("a"), "failed");
    assert!(project.contract(&["status"]).stdout.starts_with("Needs a decision (1)\n"));
    let again = project.contract(&["run", "a", "--output", ".counterproof/out.json"]);
    assert!(again.code == Some(2) && again.stderr.contains("needs a decision"), "{again}");
    assert_eq!(project.contract(&["approve", "a", "--reason", "another attempt"]).code, Some(0));
    assert_eq!(project.state("a"), "ready");
}

#[test]
fn two_contracts_that_restore_the_same_path_do_not_run_at_the_same_time() {
    let project = Project::new();
    for id in ["a", "b"] {
        let mut contract = simple(id, &[]);
        contract["rollback"] = json!({"strategy": "restore_snapshot"});
        contract["output"]["artifacts"] = json!(["shared/x.txt"]);
        project.add(&contract);
    }
    let agent = "mkdir -p shared; case $COUNTERPROOF_CONTRACT_ID in \
                 a) echo a > shared/x.txt; echo '{\"ok\": true}';; \
                 b) sleep 0.5; echo b > shared/x.txt; echo '{\"ok\": false}';; esac";
    let run = project.contract(&["run", "a", "b", "--jobs", "2", "--agent-cmd", agent]);
    assert_eq!(run.code, Some(1), "{run}");
    let kept = std::fs::read_to_string(project.sandbox.path("shared/x.txt")).unwrap();
    assert_eq!(
        (kept.as_str(), project.state("a").as_str(), project.state("b").as_str()),
        ("a\n", "completed", "rolled_back")
    );
}

#[test]
fn commits_after_an_interruption_are_not_discarded() {
    let project = Project::new();
    let mut contract = simple("a", &[]);
    contract["rollback"] = json!({"strategy": "git_reset"});
    project.add(&contract);
    assert_eq!(project.interrupt(&["a", "--agent-cmd", "touch started; sleep 300"], "started"), Some(4));
    project.put("human.txt", "of a person");
    project.commit();
    let refused = project.contract(&["run", "a", "--agent-cmd", BAD]);
    assert!(
        refused.code == Some(2) && refused.stderr.contains("has changed since the interrupted execution"),
        "{refused}"
    );
    assert!(project.sandbox.path("human.txt").exists());
    assert_eq!(project.contract(&["run", "a", "--agent-cmd", GOOD, "--no-rollback"]).code, Some(0));
}

#[test]
fn an_interrupted_rollback_ends_with_4_and_the_next_run_completes_it() {
    let project = Project::new();
    let mut contract = simple("a", &[]);
    let undo = "touch undoing; test -e interrupted || sleep 300; echo $COUNTERPROOF_CONTRACT_ID > undone";
    contract["rollback"] = json!({"strategy": "custom", "custom": undo});
    project.add(&contract);
    assert_eq!(project.interrupt(&["a", "--agent-cmd", BAD], "undoing"), Some(4));
    assert_eq!(project.state("a"), "rolling_back");
    project.put("interrupted", "");
    let completed = project.contract(&["run", "--all", "--agent-cmd", GOOD]);
    assert!(completed.code == Some(1) && completed.stderr.contains("rolled back: ran"), "{completed}");
    assert_eq!(std::fs::read_to_string(project.sandbox.path("undone")).unwrap(), "a\n");
    assert_eq!(project.state("a"), "rolled_back");
}
