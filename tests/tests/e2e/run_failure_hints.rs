//! The hints at the end of a run in which every case failed alike.

use counterproof_tests::{Agent, Reply, Sandbox, minimal_answer};
use serde_json::json;

/// Runs two cases, and returns the hints.
fn hints(agent: &Agent) -> String {
    let cases = json!([{"id": "c0", "input": {"user": "go"}}, {"id": "c1", "input": {"user": "go"}}]);
    let sandbox = Sandbox::new().with_file("cases.json", &cases.to_string());
    let url = agent.base_url();
    let line = ["run", "--cases", "cases.json", "--side", "new", "--run-id", "r1", "--base-url", &url];
    let finished = sandbox.run(line);
    assert_eq!(finished.code, Some(0), "{finished}");
    let hints = finished.stderr.lines().filter(|line| line.starts_with("hint: "));
    hints.collect::<Vec<_>>().join("\n").replace(&url, "[url]")
}

#[test]
fn the_first_violation_is_quoted_if_every_answer_violates_the_contract() {
    let agent = Agent::start(|_case_id| {
        let mut answer = minimal_answer();
        answer["events"] = json!([{"type": "tool_call", "ts": 1, "tool": "lookup"}]);
        Reply::json(&answer)
    });
    insta::assert_snapshot!(hints(&agent), @"hint: every case failed as `contract_violated`; the first violation of c0 at /events/0: the field `call_id` is missing; see `runner_failure.violations` in runs/new/r1/c0.json");
}

#[test]
fn an_agent_that_answers_every_case_with_404_may_have_another_path() {
    let agent = Agent::start(|_case_id| Reply::text(404, "text/plain", "not found"));
    insta::assert_snapshot!(hints(&agent), @"hint: every case failed with status 404; check that the path of `--base-url` is correct");
}

#[test]
fn there_is_no_hint_if_the_failures_differ() {
    let agent = Agent::start(|case_id| match case_id {
        "c0" => Reply::text(404, "text/plain", "not found"),
        _ => Reply::json(&json!({"final_output": "done"})),
    });
    assert_eq!(hints(&agent), "");
    let forbidden = Agent::start(|case_id| Reply::text(if case_id == "c0" { 404 } else { 403 }, "text/plain", "no"));
    assert_eq!(hints(&forbidden), "");
}
