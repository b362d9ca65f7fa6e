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
    assert!(finished.stderr.contains("the output of the agent is larger than the limit"), "{finished}");
    let files = ["runs", ".counterproof"].map(|name| size(project.sandbox.path(name).as_std_path()));
    assert!(files.iter().sum::<u64>() < 24 << 20, "{files:?}");
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

#[test]
fn a_draft_is_a_valid_contract_and_the_next_version_of_a_stored_one() {
    let project = Project::new();
    let draft = ["new", "shop/total/1", "--task", "Add up", "--verify", "sh total.sh", "--after", "none"];
    let finished = project.contract(&[&draft[..], &["--out", "draft.json"]].concat());
    assert_eq!(finished.code, Some(0), "{finished}");
    let finished = project.contract(&["add", "draft.json"]);
    assert_eq!(finished.code, Some(0), "{finished}");
    assert_eq!(finished.stdout, "added shop/total/1@1 (pending)\n");
    assert!(finished.stderr.contains("`shop/total/1` depends on `none`, which is not in the store"), "{finished}");
    assert_eq!(project.json(&draft)["version"], 2);
    let finished = project.contract(&["new", "a", "--task", "x", "--verify", " "]);
    assert_eq!(finished.code, Some(1), "{finished}");
    let finished = project.contract(&[&draft[..], &["--out", "draft.json"]].concat());
    assert_eq!(finished.code, Some(2), "{finished}");
}

#[test]
fn the_files_of_the_program_are_not_changes_of_the_agent() {
    let project = Project::new();
    project.put(".gitignore", "");
    project.commit();
    let mut contract = simple("a", &[]);
    contract["rollback"] = json!({"strategy": "git_reset"});
    project.add(&contract);
    let agent = format!("echo one >made.txt; {GOOD}");
    let finished = project.contract(&["run", "a", "--agent-cmd", &agent]);
    assert_eq!(finished.code, Some(0), "{finished}");
    let store = std::fs::read_to_string(project.sandbox.path(".counterproof/contracts.jsonl")).unwrap();
    assert!(store.contains(r#""changes":{"files":1,"insertions":1,"deletions":0}"#), "{store}");
}
