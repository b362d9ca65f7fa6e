//! `counterproof replay`: sends a stored request again, over HTTP, the OpenAI protocols, or to a program.

use counterproof_tests::{Agent, Reply, Sandbox, minimal_answer};
use serde_json::{Value, json};

use crate::run::assert_holds_to_the_contract;

const CASES: &str = r#"[{"id": "c1", "input": {"user": "it's 5 o'clock", "context": {"order": 7}}}]"#;
const CONFIG: &str = "[agent]\nmodel = 'm-1'\nsystem_prompt = 'Be brief.'\n[risk]\n'issue_*' = 'high'\n";

fn said(text: &str) -> Value {
    let mut answer = minimal_answer();
    answer["final_output"]["content"] = json!(text);
    answer
}

/// A run of one case against an agent that answers with one word.
fn recorded(word: &'static str, more: &[&str]) -> (Sandbox, Agent) {
    let sandbox = Sandbox::new().with_file("cases.json", CASES).with_variable("TOKEN", "s3cret-token");
    let agent = Agent::start(move |_| Reply::json(&said(word)));
    let url = agent.base_url();
    let arguments = ["run", "--cases", "cases.json", "--side", "new", "--run-id", "r1", "--base-url", &url];
    let finished = sandbox.run(arguments.iter().chain(more));
    assert_eq!(finished.code, Some(0), "{finished}");
    assert_holds_to_the_contract(&sandbox.root().join("runs/new/r1"));
    (sandbox, agent)
}

const CASE: &str = "runs/new/r1/c1.json";

#[test]
fn the_same_request_is_sent_and_an_equal_answer_is_reported_as_equal() {
    let (sandbox, agent) = recorded("done", &[]);
    assert_eq!(sandbox.json(CASE)["request_asset_href"], "assets/c1.request.json");
    let finished = sandbox.run(["replay", CASE]);
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(0), "the answers are equivalent\n"), "{finished}");
    let requests = agent.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0], requests[1]);
}

#[test]
fn the_replay_command_on_a_case_page_works_in_the_report_folder() {
    let (sandbox, agent) = recorded("done", &[]);
    let url = agent.base_url();
    let baseline = ["run", "--cases", "cases.json", "--side", "baseline", "--run-id", "r0", "--base-url", &url];
    assert_eq!(sandbox.run(baseline).code, Some(0));
    let finished = sandbox.run(["compare"]);
    assert_eq!(finished.code, Some(0), "{finished}");
    let page = std::fs::read_to_string(sandbox.path("report/cases/c1.html")).unwrap();
    let command = page.split("<code id=\"replay\">counterproof ").nth(1).and_then(|rest| rest.split('<').next());
    assert_eq!(command, Some("replay artifacts/new/c1.json"));
    let finished = sandbox.run(["replay", "report/artifacts/new/c1.json"]);
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(0), "the answers are equivalent\n"), "{finished}");
}

/// A run and comparison of one case against a program with an argument, `agent.sh done`.
fn recorded_of_a_program() -> Sandbox {
    let script = format!("test \"$1\" = done || exit 9\ncat > /dev/null\necho '{}'\n", said("done"));
    let sandbox = Sandbox::new().with_file("cases.json", CASES).with_file("agent.sh", &script);
    for (side, id) in [("baseline", "r0"), ("new", "r1")] {
        let run = ["run", "--cases", "cases.json", "--side", side, "--run-id", id, "--agent-cmd", "sh agent.sh done"];
        let finished = sandbox.run(run);
        assert_eq!(finished.code, Some(0), "{finished}");
    }
    let finished = sandbox.run(["compare"]);
    assert_eq!(finished.code, Some(0), "{finished}");
    sandbox
}

#[test]
fn a_program_must_be_passed_again_as_the_page_and_the_error_state() {
    let sandbox = recorded_of_a_program();
    let page = std::fs::read_to_string(sandbox.path("report/cases/c1.html")).unwrap();
    assert!(page.contains(">counterproof replay artifacts/new/c1.json --agent-cmd &#39;…&#39;<"), "{page}");
    for artifact in [CASE, "report/artifacts/new/c1.json"] {
        let finished = sandbox.run(["replay", artifact]);
        assert_eq!(finished.code, Some(2), "{finished}");
        assert!(finished.stderr.contains("the agent is the program `sh`"), "{finished}");
        assert!(finished.stderr.contains("`--agent-cmd 'CMD'`"), "{finished}");
        let finished = sandbox.run(["replay", artifact, "--agent-cmd", "sh agent.sh done"]);
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(0), "the answers are equivalent\n"), "{finished}");
    }
}

#[test]
fn the_printed_pipe_has_the_arguments_of_the_program() {
    let sandbox = recorded_of_a_program();
    let finished = sandbox.run(["replay", CASE, "--curl"]);
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""), "{finished}");
    assert!(finished.stderr.contains("`--agent-cmd 'CMD'`"), "{finished}");
    let finished = sandbox.run(["replay", CASE, "--curl", "--agent-cmd", "sh 'agent.sh' done"]);
    assert_eq!(finished.code, Some(0), "{finished}");
    assert!(finished.stdout.ends_with(" | sh agent.sh done\n"), "{finished}");
    let mut shell = std::process::Command::new("sh");
    let output = shell.current_dir(sandbox.root()).args(["-c", &finished.stdout]).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{}\n", said("done")));
}

#[test]
fn a_different_answer_is_described() {
    let (sandbox, _agent) = recorded("sent", &[]);
    let other = Agent::start(|_| Reply::json(&said("lost")));
    let finished = sandbox.run(["replay", CASE, "--base-url", &other.base_url()]);
    assert_eq!(finished.code, Some(1), "{finished}");
    assert!(finished.stdout.contains("output: “sent” → “lost”"), "{finished}");

    let failing = Agent::start(|_| Reply::text(500, "text/plain", "boom"));
    let finished = sandbox.run(["replay", CASE, "--base-url", &failing.base_url()]);
    assert_eq!(
        (finished.code, finished.stdout.as_str()),
        (Some(1), "new: http_error 500 (server_error)\n"),
        "{finished}"
    );
}

#[test]
fn an_unreachable_agent_and_a_case_without_a_request_are_errors() {
    let (sandbox, _agent) = recorded("done", &["--no-keep-requests"]);
    let finished = sandbox.run(["replay", CASE]);
    assert_eq!(finished.code, Some(2), "{finished}");
    let (sandbox, _agent) = recorded("done", &[]);
    let finished = sandbox.run(["replay", CASE, "--base-url", "http://127.0.0.1:1"]);
    assert_eq!(finished.code, Some(3), "{finished}");
}

#[test]
fn the_printed_command_has_the_request_and_no_secret() {
    let (sandbox, agent) = recorded("done", &["--header", "authorization:env:TOKEN"]);
    let finished = sandbox.run(["replay", CASE, "--curl"]);
    assert_eq!(finished.code, Some(0), "{finished}");
    let line = |text: &str| assert!(finished.stdout.contains(text), "no {text} in {finished}");
    line(&format!("curl --request POST --globoff --url {}/run-case", agent.base_url()));
    line("--header \"authorization: $AUTHORIZATION\"");
    line(r"it'\''s 5 o'\''clock");
    assert!(!finished.stdout.contains("s3cret"));
    for (path, bytes) in counterproof_tests::files_below(&sandbox.root().join("runs")) {
        assert!(!String::from_utf8_lossy(&bytes).contains("s3cret"), "{path}");
    }
}

#[test]
fn an_openai_protocol_is_configured_by_the_project() {
    let sandbox = Sandbox::new().with_file("cases.json", CASES).with_file("counterproof.toml", CONFIG);
    let call = json!({"id": "a", "type": "function", "function": {"name": "issue_refund", "arguments": "{}"}});
    let answer =
        json!({"choices": [{"message": {"content": null, "tool_calls": [call]}, "finish_reason": "tool_calls"}]});
    let script = format!("printf '%s\\n' '{answer}'; cat > asked.json");
    let program = sandbox.root().join("agent.sh");
    counterproof_store::write::write(&program, script.as_bytes(), counterproof_store::write::Durability::Cached)
        .unwrap();
    let run = ["run", "--cases", "cases.json", "--side", "new", "--run-id", "r1", "--agent-cmd", "sh agent.sh"];
    let finished = sandbox.run(run.iter().chain(&["--protocol", "openai-chat"]));
    assert_eq!(finished.code, Some(0), "{finished}");
    assert_holds_to_the_contract(&sandbox.root().join("runs/new/r1"));
    let asked = sandbox.json("asked.json");
    assert_eq!((&asked["model"], &asked["messages"][0]["role"]), (&json!("m-1"), &json!("system")));
    assert_eq!(sandbox.json(CASE)["proposed_actions"][0]["risk_level"], "high");
    let again = sandbox.run(["replay", CASE, "--agent-cmd", "sh agent.sh"]);
    assert_eq!(again.code, Some(0), "{again}");
}

#[test]
fn a_document_of_another_kind_is_rejected_without_rust_types() {
    let (sandbox, _agent) = recorded("done", &[]);
    let sandbox = sandbox.with_file("list.json", "[1]");
    insta::assert_snapshot!(sandbox.run(["replay", "runs/new/r1/run.json"]), @"
    exit code: 2
    --- stderr
    error: `runs/new/r1/run.json` is a `run.v1` document, not the artifact of a case
    hint: pass the artifact of a case: `CASE.json` in a run folder
    ");
    insta::assert_snapshot!(sandbox.run(["replay", "list.json"]), @"
    exit code: 2
    --- stderr
    error: `list.json` is not the artifact of a case: invalid type: sequence, expected an object with the fields of a case artifact at line 1 column 0
    hint: list all violations with `counterproof validate list.json`
    ");
}

#[test]
fn secrets_of_the_run_are_redacted_in_the_new_answer_too() {
    let (sandbox, _agent) = recorded("my key is s3cret-token", &["--secret", "env:TOKEN"]);
    let without = sandbox.run(["replay", CASE]);
    assert_eq!(without.code, Some(1), "{without}");
    let finished = sandbox.run(["replay", CASE, "--secret", "env:TOKEN"]);
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(0), "the answers are equivalent\n"), "{finished}");
    let unset = sandbox.run(["replay", CASE, "--secret", "env:NOT_SET"]);
    assert_eq!(unset.code, Some(2), "{unset}");
    assert!(unset.stderr.contains("environment variable `NOT_SET` is not set"), "{unset}");
}

#[test]
fn a_missing_file_has_a_hint_about_what_to_name() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.run(["replay", "refund_001"]), @"
    exit code: 3
    --- stderr
    error: failed to read `refund_001`: No such file or directory (os error 2)
    hint: pass the artifact of a case, such as `runs/new/ID/CASE.json`
    ");
}
