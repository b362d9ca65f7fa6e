//! Rollbacks and interruptions of contracts: only the work of the execution is undone, and the next run continues.

use serde_json::json;

use crate::contract_kit::{BAD, GOOD, Project, simple};

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
