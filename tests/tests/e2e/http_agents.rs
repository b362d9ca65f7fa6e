//! Agents of any HTTP shape: `try` proposes the lines of the configuration, and `run` reads the answers with them.

use counterproof_tests::{Agent, Reply, Sandbox};
use serde_json::{Value, json};

const CASES: &str = r#"[{"id": "refund", "input": {"user": "Refund A-1, please.", "context": {"tier": "gold"}},
                         "expected": {"tool_required": ["issue_refund"], "action_required": ["issue_refund"]}}]"#;

/// An agent with names of its own.
fn agent() -> Agent {
    Agent::start(|_| {
        Reply::json(&json!({
            "result": {"say": "Refunded 5 euros.", "did": [
                {"fn": "get_order", "input": {"id": "A-1"}, "out": {"total": 5}},
                {"fn": "issue_refund", "input": {"amount": 5}, "out": "ok"}]},
            "tok": {"in": 90, "out": 12}}))
    })
}

fn sandbox(agent: &Agent, mapping: &str) -> Sandbox {
    let config = format!(
        "[side.new]\nbase_url = \"{}\"\n\n[side.new.http]\npath = \"/run-case\"\n\
         body = '{{\"message\": \"{{{{input.user}}}}\", \"case_id\": \"{{{{case.id}}}}\"}}'\n{mapping}\n\n[risk]\nissue_refund = \"high\"\n",
        agent.base_url()
    );
    Sandbox::new().with_file("cases.json", CASES).with_file("counterproof.toml", &config)
}

const RUN: [&str; 7] = ["run", "--cases", "cases.json", "--side", "new", "--run-id", "r1"];

#[test]
fn the_lines_that_try_proposes_make_the_answers_of_an_agent_readable() {
    let agent = agent();
    let first = sandbox(&agent, "");
    let tried = first.run(["try", "--input", "Refund A-1, please."]);
    assert_eq!(tried.code, Some(0), "{tried}");
    assert!(tried.stdout.contains("\noutput = \"/result/say\"\n"), "{tried}");
    assert_eq!(agent.requests()[0], json!({"message": "Refund A-1, please.", "case_id": "try"}));
    assert!(!first.path("runs").exists(), "nothing is written");
    // Pasted as they are.
    let lines: Vec<_> = tried.stdout.lines().filter(|line| line.contains(" = ") && !line.starts_with(' ')).collect();
    let sandbox = sandbox(&agent, &lines.join("\n"));
    let run = sandbox.run(RUN);
    assert_eq!(run.code, Some(0), "{run}");
    let case = sandbox.json("runs/new/r1/refund.json");
    assert_eq!(case["final_output"]["content"], "Refunded 5 euros.");
    let action = &case["proposed_actions"][1];
    assert_eq!((&action["tool_name"], &action["risk_level"]), (&json!("issue_refund"), &json!("high")));
    assert_eq!(action["evidence_refs"], json!([{"kind": "tool_result", "call_id": "call_1"}]));
    assert_eq!(case["usage"], json!({"input_tokens": 90, "output_tokens": 12}));
    let validated = sandbox.run(["validate", "runs/new/r1"]);
    assert_eq!(validated.code, Some(0), "{validated}");
    let again = sandbox.run(["try", "--input", "x", "--format", "json"]);
    let document: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(document["mapped"]["output"], "Refunded 5 euros.", "{again}");
    assert_eq!(
        (&document["status"], &document["proposed"], &document["missing"]),
        (&json!(200), &json!({}), &json!([]))
    );
    assert_eq!(
        document["mapped"]["calls"][0],
        json!({"name": "get_order", "arguments": {"id": "A-1"}, "result": {"total": 5}})
    );
    assert_eq!(sandbox.run(["replay", "runs/new/r1/refund.json"]).code, Some(0));
}

#[test]
fn a_wrong_path_is_reported_by_run_and_by_try() {
    let agent = agent();
    let sandbox = sandbox(&agent, "output = \"/result/text\"");
    let run = sandbox.run(RUN);
    assert_eq!(run.code, Some(1), "{run}");
    let failure = &sandbox.json("runs/new/r1/refund.json")["runner_failure"];
    assert_eq!(failure["class"], "schema_mismatch");
    assert_eq!(failure["error_message"], "/result/text: the answer has /result with say, did");
    let tried = sandbox.run(["try", "--input", "x", "--format", "json"]);
    let document: Value = serde_json::from_str(&tried.stdout).unwrap();
    assert_eq!(document["missing"][0]["message"], "/result/text: the answer has /result with say, did");
    assert_eq!((tried.code, &document["proposed"]["output"]), (Some(0), &json!("/result/say")));
}

#[test]
fn try_reports_a_list_of_calls_that_is_not_there_and_proposes_the_one_that_is() {
    let agent = agent();
    let sandbox = sandbox(&agent, "output = \"/result/say\"\ncalls = { path = \"/result/calls\", name = \"/fn\" }");
    let tried = sandbox.run(["try", "--input", "x", "--format", "json"]);
    let document: Value = serde_json::from_str(&tried.stdout).unwrap();
    let missing = json!([{"key": "calls",
        "message": "/result/calls: the answer has /result with say, did; a run reads an empty list"}]);
    assert_eq!((&document["missing"], &document["proposed"]["calls"]["path"]), (&missing, &json!("/result/did")));
    assert_eq!(tried.code, Some(0), "{tried}");
    // An answer without calls may lack the list.
    assert_eq!(sandbox.run(RUN).code, Some(0));
}

#[test]
fn try_ends_with_1_without_a_text_and_with_3_without_an_agent() {
    let silent = Agent::start(|_| Reply::json(&json!({"ok": true})));
    let tried = sandbox(&silent, "").run(["try", "--input", "x"]);
    assert_eq!(tried.code, Some(1), "{tried}");
    let config = "[side.new]\nbase_url = \"http://127.0.0.1:1\"\n[side.new.http]\noutput = \"/reply\"\n";
    let tried = Sandbox::new().with_file("counterproof.toml", config).run(["try", "--input", "x"]);
    assert_eq!(tried.code, Some(3), "{tried}");
    assert!(tried.stderr.contains("cannot reach the agent at http://127.0.0.1:1"), "{tried}");
    let wrong = Sandbox::new().with_file("counterproof.toml", "[side.new.http]\noutput = \"reply\"\n");
    let tried = wrong.run(["try", "--input", "x"]);
    assert_eq!(tried.code, Some(2), "{tried}");
    assert!(
        tried.stderr.contains("counterproof.toml:2:10: `side.new.http.output`: `reply` is neither a JSON Pointer"),
        "{tried}"
    );
}

#[test]
fn a_text_answer_is_proposed_as_the_text_protocol() {
    let agent = Agent::start(|_| Reply::text(200, "text/plain", "On its way.\n"));
    let tried = sandbox(&agent, "").run(["try", "--input", "x"]);
    assert_eq!(tried.code, Some(0), "{tried}");
    assert!(tried.stdout.contains("protocol = \"text\""), "{tried}");
    let sandbox = Sandbox::new().with_file("cases.json", CASES);
    let url = format!("{}/run-case", agent.base_url());
    let run = sandbox.run(RUN.into_iter().chain(["--protocol", "text", "--base-url", &url]));
    assert_eq!(run.code, Some(0), "{run}");
    assert_eq!(sandbox.json("runs/new/r1/refund.json")["final_output"]["content"], "On its way.");
}

#[test]
fn what_native_answers_lack_is_printed_once() {
    let agent = Agent::start(|_| Reply::json(&json!({"final_output": "Done.", "events": [{"type": "note"}]})));
    let sandbox = Sandbox::new().with_file("cases.json", CASES);
    let url = agent.base_url();
    let run = sandbox.run(RUN.into_iter().chain(["--base-url", &url]));
    assert_eq!(run.code, Some(0), "{run}");
    assert_eq!(run.stderr.matches("filled in: ").count(), 1, "{run}");
    assert!(run.stderr.contains("filled in: content_type (1 case), proposed_actions (1 case), ts (1 case)"), "{run}");
    let strict = sandbox.run(["run", "--cases", "cases.json", "--side", "new", "--base-url", &url, "--strict-wire"]);
    assert_eq!(strict.code, Some(1), "{strict}");
}
