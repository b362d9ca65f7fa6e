//! Endpoints without an agreed format over a real socket: mapped JSON, streams and plain text. Then incomplete answers of the
//! native protocol.

use std::sync::Arc;
use std::time::Duration;

use counterproof_runner::{Environment, Protocol, RunError, Secret, Settings, Silent, run};
use counterproof_validation::validate_path;
use serde_json::{Value, json};

use crate::kit::{Agent, Finished, Reaction, case, cases, ok, response, run_with};

fn ask(agent: &Agent, protocol: Protocol, mapping: Value) -> Finished {
    run_with(&format!("{}/api?v=1", agent.url()), &cases(["c1"]), |settings: &mut Settings| {
        settings.protocol = protocol;
        settings.agent.http = Arc::new(serde_json::from_value(mapping).unwrap());
        settings.retry.retries = 0;
        settings.save_requests = true;
    })
}

#[track_caller]
fn assert_valid(run: &Finished) {
    let report = validate_path(&run.summary.folder).unwrap();
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
}

fn line(agent: &Agent) -> (String, String, Value) {
    let request = agent.requests().remove(0);
    let line = request.head.lines().next().unwrap().to_owned();
    (line, request.head.to_ascii_lowercase(), request.body)
}

#[test]
fn an_endpoint_of_its_own_shape_becomes_an_artifact() {
    let agent = Agent::sending(ok(&json!({"result": {"say": "Refunded.", "did": [
        {"fn": "get_order", "input": {"id": 7}, "out": {"total": 5}}, {"fn": "issue_refund", "input": {"n": 5}, "out": "ok"},
    ]}, "tok": {"in": 9, "out": 2}})));
    let run = ask(
        &agent,
        Protocol::Http,
        json!({"method": "put", "path": "/chat?stream=no",
               "body": "{\"message\": \"{{input.user}}\", \"order\": \"{{input.context.order}}\", \"session\": \"{{case.id}}\"}",
               "output": "/result/say", "usage": {"input_tokens": "/tok/in", "output_tokens": "/tok/out"},
               "calls": {"path": "/result/did", "name": "/fn", "arguments": "/input", "result": "/out"}}),
    );
    let (line, head, body) = line(&agent);
    assert_eq!(line, "PUT /api/chat?v=1&stream=no HTTP/1.1");
    assert!(head.contains("content-type: application/json\r\n"), "{head}");
    assert_eq!(body, json!({"message": "Where is my money?", "order": 7, "session": "c1"}));
    let case = run.case();
    assert_eq!(case["final_output"]["content"], "Refunded.", "{case:#}");
    assert_eq!(case["proposed_actions"][1]["evidence_refs"][0]["call_id"], "call_1");
    assert_eq!(case["usage"], json!({"input_tokens": 9, "output_tokens": 2}));
    let saved = run.json("assets/c1.request.json");
    assert_eq!((&saved["method"], &saved["protocol"]), (&json!("PUT"), &json!("http")));
    assert_eq!(saved["url"], format!("{}/api/chat", agent.url()));
    assert_eq!(run.json("run.json")["protocol"], "http");
    assert_valid(&run);
}

#[test]
fn a_path_that_finds_nothing_names_what_the_answer_has() {
    let agent = Agent::sending(ok(&json!({"result": {"say": "x", "did": []}})));
    let run = ask(&agent, Protocol::Http, json!({"output": "/result/text"}));
    let failure = run.failure("schema_mismatch", "mapping_failed");
    assert_eq!(failure["error_message"], "/result/text: the answer has /result with say, did");
    assert_eq!(line(&agent).0, "POST /api?v=1 HTTP/1.1");
    let agent = Agent::sending(ok(&json!({"err": "no model"})));
    let failure = ask(&agent, Protocol::Http, json!({"output": "/x", "error": "/err"})).failure("other", "agent_error");
    assert_eq!(failure["error_message"], "the agent answered with an error: no model");
}

#[test]
fn a_stream_whose_characters_arrive_in_pieces_is_joined() {
    let body = "data: {\"delta\": \"Grü\"}\n\ndata: {\"delta\": \"ße ☃\"}\n\ndata: [DONE]\n\n";
    let head = format!(
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream; charset=utf-8\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let agent = Agent::new([Reaction::Drip(head.into_bytes(), body.as_bytes().to_vec(), Duration::from_millis(1))]);
    let run = ask(&agent, Protocol::Http, json!({"output": "/*/delta"}));
    assert_eq!(run.case()["final_output"]["content"], "Grüße ☃", "{:#}", run.case());
    let agent = Agent::sending(response(
        "200 OK",
        "content-type: application/x-ndjson\r\n",
        b"{\"t\": \"a\"}\n{\"t\": \"b\"}\n",
    ));
    let run = ask(&agent, Protocol::Http, json!({"output": "/*/t"}));
    assert_eq!(run.case()["final_output"]["content"], "ab");
    assert_valid(&run);
}

#[test]
fn a_stream_that_is_cut_is_a_failure_and_never_a_shorter_answer() {
    let event = "data: {\"delta\": \"Refund\"}\n\n";
    let head = |framing: &str| format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{framing}\r\n\r\n");
    let length = head(&format!("content-length: {}", 2 * event.len())) + event;
    let chunked = head("transfer-encoding: chunked") + &format!("{:x}\r\n{event}\r\n", event.len());
    for response in [length, chunked] {
        let run = ask(&Agent::sending(response), Protocol::Http, json!({"output": "/*/delta"}));
        run.failure("network_error", "body_incomplete");
    }
    // Without a length, the end of the connection is the end of the answer. A part of an event is noticed.
    let closed = head("connection: close") + event + "data: {\"delta\": \"ed";
    let run = ask(&Agent::sending(closed), Protocol::Http, json!({"output": "/*/delta"}));
    run.failure("invalid_json", "not_json");
}

#[test]
fn a_secret_that_is_split_over_a_stream_is_masked() {
    let body = "data: {\"delta\": \"the key is hunter2-\"}\n\ndata: {\"delta\": \"hunter2\"}\n\n";
    let agent = Agent::sending(response("200 OK", "content-type: text/event-stream\r\n", body.as_bytes()));
    let run = run_with(&agent.url(), &cases(["c1"]), |settings| {
        settings.protocol = Protocol::Http;
        settings.agent.http = Arc::new(serde_json::from_value(json!({"output": "/*/delta"})).unwrap());
        settings.secrets.push(Secret::from("hunter2-hunter2".to_owned()));
    });
    let output = &run.case()["final_output"];
    assert_eq!(output["content"], "the key is [redacted]");
    assert_eq!(output["redactions_applied"], json!(["configured_secret"]));
    assert!(run.files().iter().all(|(_, bytes)| !String::from_utf8_lossy(bytes).contains("hunter2-hunter2")));
}

#[test]
fn a_text_endpoint_gets_the_text_at_its_base_url() {
    let agent = Agent::sending(response("200 OK", "content-type: text/plain\r\n", "Grüße\n\n".as_bytes()));
    let run = ask(&agent, Protocol::Text, json!({}));
    let (line, head, body) = line(&agent);
    assert_eq!(line, "POST /api?v=1 HTTP/1.1");
    assert!(head.contains("content-type: text/plain; charset=utf-8\r\n"), "{head}");
    assert_eq!(body, "Where is my money?");
    assert_eq!(run.case()["final_output"]["content"], "Grüße\n", "one line break is cut");
    assert_eq!(run.json("assets/c1.request.json")["body"], "Where is my money?");
    assert_valid(&run);
}

#[cfg(unix)]
#[test]
fn a_text_program_gets_the_text_and_prints_the_answer() {
    let agent = Agent::sending("");
    let run = run_with(&agent.url(), &cases(["c1"]), |settings| {
        settings.protocol = Protocol::Text;
        settings.target =
            r#"sh -c 'echo "You said: $(cat)"'"#.parse::<counterproof_runner::AgentCommand>().unwrap().into();
    });
    assert_eq!(run.case()["final_output"]["content"], "You said: Where is my money?", "{:#}", run.case());
}

#[test]
fn a_placeholder_without_a_value_ends_the_run_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let out = camino::Utf8Path::from_path(folder.path()).unwrap().join("runs");
    let url = "http://localhost:9".parse().unwrap();
    let mut settings =
        Settings::new("r1".parse().unwrap(), counterproof_artifact::Side::New, url, "c.json".into(), out.clone());
    settings.protocol = Protocol::Http;
    settings.agent.http = Arc::new(serde_json::from_value(json!({"body": "[\n\"{{input.context.tier}}\"]"})).unwrap());
    let error = run(&settings, &[case("c1")], Environment::from_system(), &mut Silent).unwrap_err();
    let expected = "case `c1`: line 2 of the body: the case has no value for `{{input.context.tier}}`";
    assert!(matches!(error, RunError::Request { .. }));
    assert_eq!(error.to_string(), expected);
    assert!(!out.exists());
}

#[test]
fn what_a_native_answer_lacks_is_filled_in_and_counted() {
    let answer = json!({
        "proposed_actions": [{"action_type": "reply", "tool_name": "none", "params": {},
                              "evidence_refs": [{"kind": "retrieval_doc", "id": "d1"}]}],
        "events": [{"type": "retrieval", "query": "q", "doc_ids": ["d1"]}], "final_output": "Done."});
    let agent = Agent::sending(ok(&answer));
    let run = run_with(&agent.url(), &cases(["c1", "c2"]), |_| {});
    assert_eq!(run.summary.filled_in.get("risk_tags"), Some(&2));
    assert_eq!(run.summary.filled_in.get("ts"), Some(&2));
    assert!(run.case()["filled_in"].as_array().unwrap().contains(&json!("doc_id")));
    assert_valid(&run);
    let strict = run_with(&agent.url(), &cases(["c1"]), |settings| settings.agent.strict_wire = true);
    strict.failure("schema_mismatch", "contract_violated");
    assert!(strict.summary.filled_in.is_empty());
}
