//! Contracts that print without an end, and runs that are killed: what they leave is bounded and valid.

use std::process::Stdio;
use std::time::Duration;

use serde_json::json;

use crate::contract_kit::{GOOD, Project, simple};

fn size(folder: &std::path::Path) -> u64 {
    let entries = walkdir::WalkDir::new(folder).into_iter().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).filter(std::fs::Metadata::is_file).map(|it| it.len()).sum()
}

#[test]
fn an_agent_that_prints_without_an_end_is_not_met_and_leaves_little() {
    let project = Project::new();
    project.add(&simple("a", &[]));
    let finished = project.contract(&["run", "a", "--agent-cmd", "yes", "--run-id", "r"]);
    assert_eq!(finished.code, Some(1), "{finished}");
    assert!(finished.stdout.contains("the output of the agent is larger than the limit"), "{finished}");
    let files = ["runs", ".counterproof"].map(|name| size(project.sandbox.path(name).as_std_path()));
    assert!(files.iter().sum::<u64>() < 200 << 20, "{files:?}");
    let finished = project.sandbox.run(["validate", "runs/new/r"]);
    assert_eq!(finished.code, Some(0), "{finished}");
}

#[test]
fn the_number_of_attempts_has_a_limit() {
    let project = Project::new();
    let mut contract = simple("a", &[]);
    contract["verification"]["retry"] = json!({"max": 101, "delay_ms": 0});
    let finished = project.add(&contract);
    assert_eq!(finished.code, Some(1), "{finished}");
    assert!(finished.stdout.contains("/verification/retry/max"), "{finished}");
}

#[test]
fn a_killed_run_is_valid_with_the_contracts_that_were_done() {
    let project = Project::new();
    project.add(&simple("a", &[]));
    project.add(&simple("b", &["a"]));
    let agent = format!("test $COUNTERPROOF_CONTRACT_ID = a || {{ : >started; sleep 1000; }}; {GOOD}");
    let mut run = project
        .sandbox
        .command(["contract", "run", "--all", "--agent-cmd", &agent, "--run-id", "killed"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !project.sandbox.path("started").exists() {
        assert!(run.try_wait().unwrap().is_none(), "the run ended before its second contract began");
        std::thread::sleep(Duration::from_millis(5));
    }
    run.kill().unwrap();
    run.wait().unwrap();
    let finished = project.sandbox.run(["validate", "runs/new/killed"]);
    assert_eq!(finished.code, Some(0), "{finished}");
    assert!(project.sandbox.path("runs/new/killed/a.json").exists());
    // The next run continues, in a folder of its own.
    let finished = project.contract(&["run", "--all", "--agent-cmd", GOOD]);
    assert_eq!(finished.code, Some(0), "{finished}");
}
