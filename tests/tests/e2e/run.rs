//! `counterproof run`: a cases file and an agent give a valid run folder.

use std::process::Stdio;
use std::time::Duration;

use camino::Utf8Path;
use counterproof_tests::{Agent, Finished, Reply, Sandbox, files_below, minimal_answer};
use counterproof_validation::validate_path;
use insta::assert_snapshot;
use serde_json::{Value, json};

/// Cases with every field of a cases file, and one case for each kind of agent failure.
fn cases() -> String {
    let case = |id: &str| json!({"id": id, "title": format!("Case {id}"), "input": {"user": format!("please {id}")}});
    let mut full = case("fmt_001");
    full["input"]["context"] = json!({"customer": "CUST-1001"});
    full["expected"] = json!({
        "tool_required": ["create_ticket"],
        "must_not_include": ["CUST-9999"],
        "json_schema": {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}
    });
    full["metadata"] = json!({"tags": ["format"], "severity": "high", "kind": "tool_agent"});
    full["suite"] = json!("correctness");
    let others = ["large_001", "fetch_http_500_001", "fetch_invalid_json_001", "fetch_timeout_001", "wrong_shape_001"];
    json!([vec![full], others.map(case).to_vec()].concat()).to_string()
}

fn reply(case_id: &str) -> Reply {
    match case_id {
        "fetch_http_500_001" => Reply::text(500, "application/json", r#"{"error": "boom"}"#),
        "fetch_invalid_json_001" => Reply::text(200, "text/html", "<html>sorry</html>"),
        "fetch_timeout_001" => Reply::json(&minimal_answer()).after(Duration::from_mins(1)),
        "wrong_shape_001" => Reply::json(&json!({"answer": "done"})),
        _ => Reply::json(&answer(case_id)),
    }
}

fn answer(case_id: &str) -> Value {
    let rows = vec!["a row"; if case_id == "large_001" { 5000 } else { 1 }];
    json!({
        "case_id": case_id,
        "version": "new",
        "workflow_id": "support",
        "model": "m-1",
        "proposed_actions": [{
            "action_id": "a1", "action_type": "create_ticket", "tool_name": "create_ticket", "params": {"n": 1},
            "risk_level": "medium", "risk_tags": [], "evidence_refs": [{"kind": "tool_result", "call_id": "c1"}]
        }],
        "events": [
            {"type": "tool_call", "ts": 1, "call_id": "c1", "action_id": "a1", "tool": "lookup", "args": {}},
            {"type": "tool_result", "ts": 2, "call_id": "c1", "status": "ok", "latency_ms": 3,
             "payload_summary": {"rows": rows}},
            {"type": "a_later_type", "ts": 3, "anything": true}
        ],
        "final_output": {"content_type": "json", "content": {"ticket": "T-1"}}
    })
}

fn sandbox() -> Sandbox {
    Sandbox::new().with_file("cases.json", &cases())
}

fn run(sandbox: &Sandbox, agent: &Agent, more: &[&str]) -> Finished {
    let url = agent.base_url();
    let arguments = ["run", "--cases", "cases.json", "--side", "new", "--run-id", "r1", "--base-url", &url];
    sandbox.run(arguments.iter().chain(more))
}

#[track_caller]
pub(crate) fn assert_holds_to_the_contract(folder: &Utf8Path) {
    let report = validate_path(folder).unwrap();
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
}

#[test]
fn every_case_ends_as_a_valid_artifact() {
    let (sandbox, agent) = (sandbox(), Agent::start(reply));
    let finished = run(&sandbox, &agent, &["--timeout", "700ms", "--retries", "1", "--concurrency", "3"]);
    assert_snapshot!(finished, @r#"
    exit code: 0
    --- stdout
    run folder: runs/new/r1
    --- stderr
    6 cases: 2 ok, 4 failed (1 http_error, 1 invalid_json, 1 schema_mismatch, 1 timeout), 1 retried
      fetch_http_500_001: server_error 500: {"error": "boom"}
      fetch_invalid_json_001: not_json 200: the body is not JSON: expected value at line 1 column 1
      fetch_timeout_001: response_timeout: the agent did not answer in time
      wrong_shape_001: contract_violated 200: the field `final_output` is missing
    hint: 1 case got no answer in time; if the agent needs longer, raise `--timeout`, or `timeout` below `[run]` in counterproof.toml
    next: counterproof validate runs/new/r1
          counterproof run --side baseline …, then counterproof compare
    "#);
    let valid = sandbox.run(["validate", "runs/new/r1"]);
    assert_eq!(valid.code, Some(0), "{valid}");

    let run = sandbox.json("runs/new/r1/run.json");
    assert_eq!(run["cases_path_as_passed"], "cases.json");
    assert_eq!((&run["cases_path"], &run["base_url"]), (&json!("../../../cases.json"), &json!(agent.base_url())));
    assert_eq!((&run["stats"]["cases_completed"], &run["stats"]["cases_failed"]), (&json!(2), &json!(4)));
    let case = sandbox.json("runs/new/r1/fmt_001.json");
    assert_eq!((&case["status"], &case["model"]), (&json!("ok"), &json!("m-1")));
    assert_eq!(case["events"][2], json!({"type": "a_later_type", "ts": 3, "anything": true}));
    let large = sandbox.json("runs/new/r1/large_001.json");
    assert_eq!(large["events"][1]["payload_asset_href"], "assets/full_payload_new_large_001_e1.json");
    let class = |id: &str| sandbox.json(&format!("runs/new/r1/{id}.json"))["runner_failure"]["class"].clone();
    assert_eq!(class("fetch_http_500_001"), "http_error");
    assert_eq!(class("fetch_invalid_json_001"), "invalid_json");
    assert_eq!(class("fetch_timeout_001"), "timeout");
    assert_eq!(class("wrong_shape_001"), "schema_mismatch");

    let first = &agent.requests().into_iter().find(|request| request["case_id"] == "fmt_001").unwrap();
    assert_eq!(first["input"], json!({"user": "please fmt_001", "context": {"customer": "CUST-1001"}}));
}

#[test]
fn only_the_selected_cases_are_run() {
    let (sandbox, agent) = (sandbox(), Agent::start(reply));
    let finished = run(&sandbox, &agent, &["--only", "large_001", "--only", "fmt_001"]);
    assert_eq!(finished.code, Some(0), "{finished}");
    let ids = &sandbox.json("runs/new/r1/run.json")["selected_case_ids"];
    assert_eq!(ids, &json!(["fmt_001", "large_001"]), "in the order of the cases file");
    assert_eq!(agent.requests().len(), 2);

    assert_snapshot!(run(&sandbox, &agent, &["--only", "fmt_001,fmt_002"]), @"
    exit code: 2
    --- stderr
    error: `cases.json` has no case `fmt_002`
    hint: did you mean `fmt_001`?
    ");
}

#[test]
fn a_dry_run_prints_the_requests_and_writes_no_file() {
    let (sandbox, agent) = (sandbox(), Agent::start(reply));
    let finished = run(&sandbox, &agent, &["--dry-run", "--only", "fmt_001,large_001"]);
    assert_snapshot!(finished.redact(&agent.base_url(), "[agent]"), @"
    exit code: 0
    --- stdout
    would run 2 cases as side new against [agent]/run-case, with up to 3 attempts each
      fmt_001  Case fmt_001
      large_001  Case large_001
    would write runs/new/r1
    ");
    assert!(agent.requests().is_empty() && !sandbox.path("runs").exists());
}

#[test]
fn a_run_is_never_overwritten() {
    let (sandbox, agent) = (sandbox(), Agent::start(reply));
    assert_eq!(run(&sandbox, &agent, &["--only", "fmt_001"]).code, Some(0));
    assert_snapshot!(run(&sandbox, &agent, &["--only", "fmt_001"]), @"
    exit code: 2
    --- stderr
    error: the run folder `runs/new/r1` already exists
    hint: choose another `--run-id`; runs are never overwritten
    hint: to continue a stopped run, replace `--run-id` with `--resume`
    ");
    assert_eq!(agent.requests().len(), 1);
}

#[test]
fn an_unreachable_agent_is_an_error_and_every_case_has_its_artifact() {
    let sandbox = sandbox();
    let url = "http://no-such-agent.invalid";
    let arguments = ["run", "--cases", "cases.json", "--side", "new", "--run-id", "r1", "--base-url", url];
    assert_snapshot!(sandbox.run(arguments.iter().chain(&["--retries", "0"])), @"
    exit code: 3
    --- stdout
    run folder: runs/new/r1
    --- stderr
    6 cases: 0 ok, 6 failed (6 network_error), 0 retried
      fetch_http_500_001: dns: the host name could not be resolved
      fetch_invalid_json_001: dns: the host name could not be resolved
      fetch_timeout_001: dns: the host name could not be resolved
      fmt_001: dns: the host name could not be resolved
      large_001: dns: the host name could not be resolved
      wrong_shape_001: dns: the host name could not be resolved
    error: cannot reach the agent at http://no-such-agent.invalid: the host name could not be resolved
    hint: check that the agent is running and that `--base-url` is its current address
    hint: the artifacts in the run folder contain the details of each attempt
    ");
    assert_holds_to_the_contract(&sandbox.path("runs/new/r1"));
    // A comparison warns of such a run.
    let compared = sandbox.run(["compare", "runs/new/r1", "runs/new/r1", "--no-write-back"]);
    assert!(compared.stderr.contains("warning: every case of the run `runs/new/r1` failed"), "{compared}");
}

#[test]
fn the_warning_about_a_baseline_without_answers_is_red_on_terminals_only() {
    let sandbox = Sandbox::new().with_file("cases.json", &cases());
    let line = ["run", "--cases", "cases.json", "--side", "baseline", "--base-url", "http://127.0.0.1:1"];
    let finished = sandbox.run(line);
    let warning = finished.stderr.lines().find(|line| line.contains("the baseline answered"));
    assert_eq!(
        warning,
        Some("warning: the baseline answered 0 of 6 cases; cases without an answer cannot be compared"),
        "{finished}"
    );
    assert!(!finished.stderr.contains('\u{1b}'), "{finished}");
    let coloured = sandbox.with_variable("CLICOLOR_FORCE", "1").run(line.iter().chain(&["--run-id", "red"]));
    assert!(coloured.stderr.contains("\u{1b}[31mwarning: the baseline answered 0 of 6 cases"), "{coloured}");
}

#[test]
fn secrets_from_the_environment_are_in_no_file_or_message() {
    let agent = Agent::start(|_| Reply::text(500, "text/plain", "you sent tok-s3cret-4711"));
    let sandbox = sandbox().with_variable("AGENT_TOKEN", "Bearer tok-s3cret-4711");
    let finished = run(&sandbox, &agent, &["--header", "authorization:env:AGENT_TOKEN", "--retries", "0"]);
    assert_eq!(finished.code, Some(1), "{finished}");
    for (path, bytes) in files_below(sandbox.root()) {
        assert!(!String::from_utf8_lossy(&bytes).contains("s3cret"), "{path}");
    }
    let wrong = run(&sandbox, &agent, &["--header", "tok-s3cret-4711", "--run-id", "r2"]);
    assert!(wrong.code == Some(2) && !wrong.to_string().contains("s3cret"), "{wrong}");
    let arguments = ["run", "--cases", "cases.json", "--side", "new", "--base-url", "ftp://user:s3cret@agent"];
    let wrong = sandbox.run(arguments);
    assert!(wrong.code == Some(2) && !wrong.to_string().contains("s3cret"), "{wrong}");
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_writes_its_document_and_reports_the_interruption() {
    let agent = Agent::start(|id| match id {
        "fmt_001" => reply(id),
        _ => Reply::json(&answer(id)).after(Duration::from_mins(1)),
    });
    let sandbox = sandbox();
    let url = agent.base_url();
    let arguments = ["run", "--cases", "cases.json", "--side", "new", "--run-id", "r1", "--base-url", &url];
    let child = sandbox
        .command(arguments.iter().chain(&["--timeout", "5m"]))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut child = child.unwrap();
    while !sandbox.path("runs/new/r1/fmt_001.json").exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    // Two signals: the second one does not wait for requests in flight.
    for _ in 0..2 {
        let killed = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        std::thread::sleep(Duration::from_millis(300));
    }
    assert_eq!(child.wait().unwrap().code(), Some(4));
    let run = sandbox.json("runs/new/r1/run.json");
    assert_eq!((&run["interrupted"], &run["stats"]["cases_completed"]), (&json!(true), &json!(1)));
}

#[test]
fn an_invalid_expression_is_reported_by_run_and_by_compare() {
    let sandbox = Sandbox::new().with_file(
        "cases.yaml",
        "- id: a\n  input: {user: hi}\n  expected:\n    expect:\n      - output.contains('refund')\n",
    );
    let run = sandbox.run(["run", "--cases", "cases.yaml", "--side", "new", "--dry-run"]);
    insta::assert_snapshot!(run, @"
    exit code: 2
    --- stderr
    error: cases.yaml:5:9: case `a`: `expected.expect[0]` is not a valid expression: unknown variable `output` (known variables: final_output, proposed_actions, events, input)
      |
    5 | output.contains('refund')
      | ^^^^^^
    ");
    let compare = sandbox.run(["compare", "--cases", "cases.yaml"]);
    assert_eq!(compare, run);
}

#[test]
fn printed_commands_are_quoted() {
    let agent = Agent::start(|_| Reply::json(&minimal_answer()));
    let sandbox = Sandbox::new().with_file("my cases.json", r#"[{"id": "c1", "input": {"user": "go"}}]"#);
    let url = agent.base_url();
    let run = |side, more: &[&str]| {
        let fixed = ["run", "--cases", "my cases.json", "--out", "my $runs", "--base-url", &url, "--side", side];
        sandbox.run(fixed.iter().chain(more))
    };
    assert_eq!(run("baseline", &["--run-id", "b"]).code, Some(0));
    let finished = run("new", &["--run-id", "n"]);
    let expected = "next: counterproof validate 'my $runs/new/n'\n      counterproof compare --runs 'my $runs' --cases 'my cases.json'\n";
    assert!(finished.stderr.contains(expected), "{finished}");
    let shard = run("new", &["--run-id", "s", "--shard", "1/2"]);
    assert!(shard.stderr.contains("merge --shards 2 --out 'my $runs/new/s'"), "{shard}");
    let damaged = sandbox.with_file("my $runs/new/n/c1.json", "{}");
    let replayed = damaged.run(["replay", "my $runs/new/n/c1.json"]);
    assert!(replayed.stderr.contains("`counterproof validate 'my $runs/new/n/c1.json'`"), "{replayed}");
}

#[test]
fn a_missing_cases_file_has_a_hint_about_what_to_name() {
    assert_snapshot!(Sandbox::new().run(["run", "--cases", "nope.json", "--side", "new"]), @"
    exit code: 3
    --- stderr
    error: failed to read `nope.json`
      caused by: No such file or directory (os error 2)
    hint: pass an existing cases file, or a folder of them; docs/cases.md describes the format
    ");
}
