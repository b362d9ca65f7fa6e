//! The OpenAI protocols over a real socket: the sent request, and the artifact of the answer.

use counterproof_artifact::RiskLevel;
use counterproof_runner::{AgentOptions, Protocol, Settings};
use counterproof_validation::validate_path;
use serde_json::{Value, json};

use crate::kit::{Agent, Finished, cases, ok, run_with};

fn options() -> AgentOptions {
    let mut options = AgentOptions {
        model: Some("m-1".to_owned()),
        system_prompt: Some("Be brief.".to_owned()),
        tools: Some(vec![json!({"type": "function", "function": {"name": "issue_refund"}})]),
        risk: [("issue_*".to_owned(), RiskLevel::High)].into_iter().collect(),
        ..AgentOptions::default()
    };
    options.set_request([("temperature".to_owned(), json!(0))].into_iter().collect()).unwrap();
    options
}

fn ask(agent: &Agent, protocol: Protocol) -> Finished {
    let base = format!("{}/v1", agent.url());
    run_with(&base, &cases(["c1"]), |settings: &mut Settings| {
        settings.protocol = protocol;
        settings.agent = options();
        settings.retry.retries = 0;
    })
}

#[track_caller]
fn assert_valid(run: &Finished) {
    let report = validate_path(&run.summary.folder).unwrap();
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
}

fn only_request(agent: &Agent) -> (String, Value) {
    let mut requests = agent.requests();
    assert_eq!(requests.len(), 1);
    let request = requests.remove(0);
    (request.head.lines().next().unwrap().to_owned(), request.body)
}

#[test]
fn a_chat_completion_becomes_an_artifact() {
    let call =
        json!({"id": "call_a", "type": "function", "function": {"name": "issue_refund", "arguments": "{\"n\": 1}"}});
    let agent = Agent::sending(ok(&json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1_767_600_000, "model": "m-1-2026",
        "choices": [{"index": 0, "finish_reason": "tool_calls",
                     "message": {"role": "assistant", "content": "One moment.", "tool_calls": [call]}}]
    })));
    let run = ask(&agent, Protocol::OpenaiChat);
    let (line, body) = only_request(&agent);
    assert_eq!(line, "POST /v1/chat/completions HTTP/1.1");
    assert_eq!(
        body,
        json!({
            "model": "m-1", "temperature": 0, "stream": false,
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "{\"order\":7}"},
                {"role": "user", "content": "Where is my money?"},
            ],
            "tools": [{"type": "function", "function": {"name": "issue_refund"}}],
        })
    );
    let case = run.case();
    assert_eq!((&case["status"], &case["model"]), (&json!("ok"), &json!("m-1-2026")), "{case:#}");
    assert_eq!(case["proposed_actions"][0]["risk_level"], "high");
    assert_eq!(case["final_output"]["content"], "One moment.");
    let document = run.json("run.json");
    assert_eq!((&document["protocol"], &document["model"]), (&json!("openai-chat"), &json!("m-1")));
    assert_valid(&run);
}

#[test]
fn a_response_of_the_responses_api_becomes_an_artifact() {
    let agent = Agent::sending(ok(&json!({
        "id": "resp_1", "object": "response", "created_at": 1_767_600_000, "status": "completed", "error": null,
        "output": [
            {"type": "function_call", "id": "fc_1", "call_id": "call_a", "name": "issue_refund", "arguments": "{}"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
        ]
    })));
    let run = ask(&agent, Protocol::OpenaiResponses);
    let (line, body) = only_request(&agent);
    assert_eq!(line, "POST /v1/responses HTTP/1.1");
    assert_eq!((&body["instructions"], &body["stream"]), (&json!("Be brief."), &json!(false)));
    assert_eq!(body["input"][1], json!({"role": "user", "content": "Where is my money?"}));
    assert_eq!(run.case()["final_output"]["content"], "Done.");
    assert_valid(&run);
}

#[test]
fn an_error_with_a_status_of_success_is_a_failure_with_its_body() {
    let agent = Agent::sending(ok(&json!({"error": {"message": "the model is overloaded"}})));
    let run = ask(&agent, Protocol::OpenaiChat);
    let failure = run.failure("other", "agent_error");
    assert!(failure["body_snippet"].as_str().unwrap().contains("overloaded"));
    assert_valid(&run);
}

#[test]
fn a_schema_violation_names_its_location() {
    let agent = Agent::sending(ok(&json!({"choices": [{"message": {"tool_calls": [{"id": "a", "function": {}}]}}]})));
    let failure = ask(&agent, Protocol::OpenaiChat).failure("schema_mismatch", "protocol_violated");
    assert_eq!(failure["violations"][0]["pointer"], "/choices/0/message/tool_calls/0/function/name");
}
