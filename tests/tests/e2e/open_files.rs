//! Limits of open files: cases wait for files instead of failing for lack of them.

use std::fmt::Write as _;
use std::thread;
use std::time::Duration;

use counterproof_tests::{Agent, Finished, Reply, Sandbox, minimal_answer};
use serde_json::{Value, json};

const FIXED: [&str; 9] = ["run", "--cases", "cases.json", "--side", "new", "--run-id", "r", "--concurrency", "64"];

fn sandbox(cases: usize) -> Sandbox {
    let cases: Value = (0..cases).map(|index| json!({"id": format!("c{index}"), "input": {"user": "go"}})).collect();
    let agent = format!("cat > /dev/null\nsleep 0.02\necho '{}'\n", minimal_answer());
    Sandbox::new().with_file("cases.json", &cases.to_string()).with_file("agent.sh", &agent)
}

/// Runs the cases with a limit of open files that the program cannot raise.
fn run_with_limit(sandbox: &Sandbox, limit: usize, agent: [&str; 2]) -> Finished {
    let script = format!("ulimit -n {limit}; exec \"$@\"");
    let arguments = FIXED.iter().copied().chain(["--retries", "0"]).chain(agent);
    sandbox.run_in(&["sh", "-c", &script, "sh"], arguments)
}

fn slow_agent() -> Agent {
    Agent::start(|_| Reply::json(&minimal_answer()).after(Duration::from_millis(20)))
}

#[test]
fn no_more_cases_run_at_once_than_the_limit_of_open_files_allows() {
    let (agent, program) = (slow_agent(), ["--agent-cmd", "sh agent.sh"]);
    let url = agent.base_url();
    for target in [["--base-url", url.as_str()], program] {
        let sandbox = sandbox(120);
        let finished = run_with_limit(&sandbox, 80, target);
        assert_eq!(finished.code, Some(0), "{finished}");
        assert!(finished.stderr.contains("120 cases: 120 ok"), "{finished}");
        let warnings: Vec<_> = finished.stderr.lines().filter(|line| line.starts_with("warning: ")).collect();
        let [warning] = warnings[..] else { panic!("{finished}") };
        assert!(warning.starts_with("warning: the limit of 80 open files allows "), "{warning}");
        assert!(warning.ends_with(" in flight instead of 64"), "{warning}");
    }
}

#[test]
fn a_limit_that_suffices_is_not_warned_about() {
    let agent = slow_agent();
    let url = agent.base_url();
    let sandbox = sandbox(2);
    let finished = run_with_limit(&sandbox, 80, ["--base-url", &url]);
    assert!(finished.code == Some(0) && !finished.stderr.contains("warning"), "{finished}");
}

#[test]
fn too_few_open_files_are_never_the_failure_of_a_case() {
    let agent = slow_agent();
    let url = agent.base_url();
    thread::scope(|scope| {
        for limit in [12, 16, 20, 24, 28, 32, 40] {
            for target in [["--base-url", url.as_str()], ["--agent-cmd", "sh agent.sh"]] {
                scope.spawn(move || assert_no_case_fails(limit, target));
            }
        }
    });
}

fn assert_no_case_fails(limit: usize, target: [&str; 2]) {
    let sandbox = sandbox(12);
    let finished = run_with_limit(&sandbox, limit, target);
    let mut failures = String::new();
    for index in 0..12 {
        let Ok(text) = std::fs::read_to_string(sandbox.path(&format!("runs/new/r/c{index}.json"))) else { continue };
        let case: Value = serde_json::from_str(&text).unwrap();
        if case["status"] != "ok" {
            let _ = writeln!(failures, "c{index}: {}", case["runner_failure"]);
        }
    }
    assert!(failures.is_empty(), "limit {limit}, {target:?}:\n{failures}{finished}");
    assert!(matches!(finished.code, Some(0 | 3)), "limit {limit}, {target:?}: {finished}");
    assert!(finished.code == Some(0) || finished.stderr.contains("oo many open files"), "limit {limit}: {finished}");
}
