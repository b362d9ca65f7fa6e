//! The baseline that is chosen if none is named.

use counterproof_tests::{Agent, Finished, Reply, Sandbox, minimal_answer};

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
