//! The baseline that is chosen if none is named: the latest one with an answer.

use counterproof_store::write::{Durability, write};
use counterproof_tests::{Agent, Finished, Reply, Sandbox, minimal_answer};
use serde_json::Value;

fn sandbox() -> Sandbox {
    Sandbox::new().with_file("cases.json", r#"[{"id": "one", "input": {"user": "go"}}]"#)
}

fn agent() -> Agent {
    Agent::start(|_case_id| Reply::json(&minimal_answer()))
}

fn run(sandbox: &Sandbox, url: &str, line: &str) -> Finished {
    sandbox.run(["run", "--cases", "cases.json", "--base-url", url].into_iter().chain(line.split(' ')))
}

/// Makes a run of an agent that answers.
#[track_caller]
fn answered(sandbox: &Sandbox, agent: &Agent, line: &str) -> Finished {
    let finished = run(sandbox, &agent.base_url(), line);
    assert_eq!(finished.code, Some(0), "{finished}");
    finished
}

/// Makes a run of an agent that is down.
#[track_caller]
fn unanswered(sandbox: &Sandbox, line: &str) {
    let finished = run(sandbox, "http://127.0.0.1:1", line);
    assert_eq!(finished.code, Some(3), "{finished}");
}

/// Changes the run.json of a baseline.
fn change_run(sandbox: &Sandbox, id: &str, change: impl Fn(&mut Value)) {
    let name = format!("runs/baseline/{id}/run.json");
    let mut run = sandbox.json(&name);
    change(&mut run);
    write(&sandbox.path(&name), run.to_string().as_bytes(), Durability::Cached).unwrap();
}

/// Compares without naming a run, and returns the id of the baseline that was used, or of its first repeat.
fn compared_baseline(sandbox: &Sandbox) -> String {
    let compared = sandbox.run(["compare", "--cases", "cases.json"]);
    assert!(sandbox.path("report/evaluation.json").is_file(), "{compared}");
    sandbox.json("report/evaluation.json")["baseline"]["run_id"].as_str().unwrap().to_owned()
}

fn notes(finished: &Finished) -> String {
    let is_note = |line: &&str| line.starts_with("note: ") || line.starts_with("warning: ");
    finished.stderr.lines().filter(is_note).collect::<Vec<_>>().join("\n")
}

#[test]
fn each_command_names_its_own_option_to_select_another_baseline() {
    let (sandbox, agent) = (sandbox(), agent());
    for id in ["a", "b"] {
        answered(&sandbox, &agent, &format!("--side baseline --run-id {id}"));
    }
    let confirmed = answered(&sandbox, &agent, "--side new --run-id n --confirm 2");
    insta::assert_snapshot!(notes(&confirmed), @"note: using the latest baseline in `runs/baseline`, `runs/baseline/b`; ignoring 1 other. Select others with `--against DIR…`");
    insta::assert_snapshot!(notes(&sandbox.run(["compare", "--cases", "cases.json"])), @"note: using the latest baseline in `runs/baseline`, `runs/baseline/b`; ignoring 1 other. Select others with `--baseline DIR…`");
}

#[test]
fn a_newer_baseline_without_answers_is_skipped_by_every_command_and_named() {
    let (sandbox, agent) = (sandbox(), agent());
    answered(&sandbox, &agent, "--side baseline --run-id good");
    unanswered(&sandbox, "--side baseline --run-id down");
    let note =
        "note: skipping the newer baseline `runs/baseline/down`: no case has an answer. You can remove the folder";

    let confirmed = answered(&sandbox, &agent, "--side new --run-id n --confirm 2");
    assert_eq!(notes(&confirmed), note, "{confirmed}");
    let compared = sandbox.run(["compare", "--cases", "cases.json"]);
    assert_eq!(notes(&compared), note, "{compared}");
    assert_eq!(sandbox.json("report/evaluation.json")["baseline"]["run_id"], "good");

    let appended = sandbox.run(["accept", "--append", "--reason", "more"]);
    assert!(appended.stderr.contains(note), "{appended}");
    assert_eq!(sandbox.json("runs/baseline/n/run.json")["group_id"], "good");
}

#[test]
fn a_stopped_baseline_is_skipped_if_none_of_its_artifacts_has_an_answer() {
    let (sandbox, agent) = (sandbox(), agent());
    answered(&sandbox, &agent, "--side baseline --run-id good");
    answered(&sandbox, &agent, "--side new --run-id n");
    for (id, chosen) in [("down", "good"), ("up", "up")] {
        let line = format!("--side baseline --run-id {id}");
        if id == "up" {
            answered(&sandbox, &agent, &line);
        } else {
            unanswered(&sandbox, &line);
        }
        change_run(&sandbox, id, |run| drop(run.as_object_mut().unwrap().remove("stats")));
        assert_eq!(compared_baseline(&sandbox), chosen);
    }
}

#[test]
fn a_group_of_repeats_is_skipped_only_if_no_repeat_has_an_answer() {
    let (sandbox, agent) = (sandbox(), agent());
    answered(&sandbox, &agent, "--side baseline --run-id good");
    answered(&sandbox, &agent, "--side baseline --run-id half --repeat 2");
    answered(&sandbox, &agent, "--side new --run-id n");
    for (id, chosen) in [("half-r2", "half-r1"), ("half-r1", "good")] {
        change_run(&sandbox, id, |run| run["stats"]["cases_completed"] = 0.into());
        assert_eq!(compared_baseline(&sandbox), chosen);
    }
}

#[test]
fn the_only_baseline_is_used_without_answers_and_may_be_removed() {
    let (sandbox, agent) = (sandbox(), agent());
    unanswered(&sandbox, "--side baseline --run-id down");
    let confirmed = answered(&sandbox, &agent, "--side new --run-id n --confirm 2");
    let warning = "warning: no case has an answer in the latest baseline, `runs/baseline/down`. You can remove the folder, and run the baseline again";
    assert_eq!(notes(&confirmed), warning, "{confirmed}");
    // New runs without answers are what a comparison must report.
    unanswered(&sandbox, "--side new --run-id lost");
    let compared = sandbox.run(["compare", "--cases", "cases.json"]);
    assert!(notes(&compared).starts_with(warning), "{compared}");
    assert_eq!(sandbox.json("report/evaluation.json")["new"]["run_id"], "lost");
}
