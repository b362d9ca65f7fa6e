//! Tests of mapped answers: the texts, calls, actions, documents and usage that a mapping finds.

use counterproof_artifact::{RiskLevel, Side};
use jiff::Timestamp;

use super::*;

fn endpoint(mapping: Value) -> HttpEndpoint {
    let risk = [("issue_*".to_owned(), RiskLevel::High)].into_iter().collect();
    HttpEndpoint { mapping: Arc::new(serde_json::from_value(mapping).unwrap()), risk }
}

fn read_as(mapping: Value, content_type: Option<&str>, body: &[u8]) -> Result<Value, Fault> {
    let case_id = "c1".parse().unwrap();
    let received = Timestamp::from_millisecond(1_767_600_000_123).unwrap();
    let context = AnswerContext { case_id: &case_id, side: Side::New, received, content_type };
    Ok(serde_json::to_value(endpoint(mapping).answer(body, context)?).unwrap())
}

fn read(mapping: Value, answer: &Value) -> Result<Value, Fault> {
    read_as(mapping, Some("application/json"), answer.to_string().as_bytes())
}

fn message(mapping: Value, answer: &Value) -> String {
    let fault = read(mapping, answer).unwrap_err();
    assert_eq!(fault.reason, Reason::MappingFailed);
    fault.message
}

fn calls() -> Value {
    json!({"output": "/result/say", "calls": {"path": "/result/did", "name": "/fn", "arguments": "/input", "result": "/out",
           "id": "/id", "error": "/err"}})
}

#[test]
fn calls_become_events_and_actions_with_the_earlier_results_as_evidence() {
    let answer = json!({"result": {"say": "Done.", "did": [
        {"fn": "get_order", "input": {"id": 7}, "out": {"total": 5}, "id": "x"},
        {"fn": "issue_refund", "input": "{\"n\": 1}", "out": "", "id": "x", "err": "declined"},
        {"fn": "note", "input": null, "out": [1], "err": false},
    ]}});
    let case = read(calls(), &answer).unwrap();
    let kinds: Vec<_> =
        case["events"].as_array().unwrap().iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        ["tool_call", "tool_result", "tool_call", "tool_result", "tool_call", "tool_result", "final_output"]
    );
    assert_eq!(case["events"][1]["payload_summary"], json!({"total": 5}));
    let failed = &case["events"][3];
    assert_eq!((&failed["status"], &failed["payload_summary"]), (&json!("error"), &json!("declined")));
    assert_eq!(case["events"][5]["payload_summary"], "[1]");
    let actions = case["proposed_actions"].as_array().unwrap();
    let ids: Vec<_> = actions.iter().map(|action| action["action_id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["x", "call_2", "call_3"], "a repeated id is replaced");
    assert_eq!((&actions[1]["risk_level"], &actions[1]["params"]), (&json!("high"), &json!({"n": 1})));
    assert_eq!(actions[0]["evidence_refs"], json!([]));
    assert_eq!(actions[1]["evidence_refs"], json!([{"kind": "tool_result", "call_id": "x"}]));
    assert_eq!(case["final_output"], json!({"content_type": "text", "content": "Done."}));
}

#[test]
fn mapped_actions_replace_the_calls_as_actions() {
    let mapping = json!({"output": "/say", "calls": {"path": "/steps/*/tools", "name": "/n"},
                         "actions": {"path": "/plan", "name": "/tool", "arguments": "/args"},
                         "documents": {"path": "/sources", "id": "/doc"},
                         "usage": {"input_tokens": "/tok/*/in", "output_tokens": "/tok/0/out", "cost": "/none"}});
    let answer = json!({"say": {"a": 1}, "steps": [{"tools": [{"n": "a"}]}, {}, {"tools": {"n": "b"}}],
                        "plan": [{"tool": "issue_refund", "args": {"n": 2}}], "sources": [{"doc": 7}, {"doc": "d2"}],
                        "tok": [{"in": 3, "out": 4}, {"in": 5}]});
    let case = read(mapping, &answer).unwrap();
    assert_eq!(case["events"][0]["doc_ids"], json!(["7", "d2"]));
    assert_eq!((&case["events"][1]["tool"], &case["events"][2]["tool"]), (&json!("a"), &json!("b")));
    assert_eq!(case["events"][1]["action_id"], Value::Null);
    assert_eq!(case["proposed_actions"][0]["params"], json!({"n": 2}));
    assert_eq!(case["usage"], json!({"input_tokens": 8, "output_tokens": 4}));
    assert_eq!(case["final_output"], json!({"content_type": "json", "content": {"a": 1}}));
}

#[test]
fn a_wrong_path_names_what_the_answer_has() {
    let answer = json!({"result": {"say": "hi", "did": [{"fn": "a", "out": 1}]}});
    assert_eq!(
        message(json!({"output": "/result/text"}), &answer),
        "/result/text: the answer has /result with say, did"
    );
    assert_eq!(message(calls(), &answer), "/input: the element /result/did/0 has fn, out");
    let wrong = json!({"output": "/result/say", "calls": {"path": "/results/did", "name": "/fn"}});
    assert_eq!(message(wrong, &answer), "/results/did: the answer has result");
    let wrong = json!({"output": "/result/say", "calls": {"path": "/result/did", "name": "/fn", "error": "!item.ok"}});
    assert_eq!(message(wrong, &answer), "!item.ok: missing field `ok`");
    assert!(read(calls(), &json!({"result": {"say": "no calls"}})).is_ok());
}

#[test]
fn an_error_of_the_answer_fails_the_case() {
    let mapping = || json!({"output": "/say", "error": "/err"});
    for none in [
        json!({"say": "x"}),
        json!({"say": "x", "err": null}),
        json!({"say": "x", "err": ""}),
        json!({"say": "x", "err": false}),
    ] {
        assert!(read(mapping(), &none).is_ok(), "{none}");
    }
    let fault = read(mapping(), &json!({"err": "no model"})).unwrap_err();
    assert_eq!(
        (fault.reason, fault.message.as_str()),
        (Reason::AgentError, "the agent answered with an error: no model")
    );
    assert!(read(json!({"output": "/say", "error": "!answer.ok"}), &json!({"say": "x", "ok": true})).is_ok());
}

#[test]
fn the_texts_of_a_stream_are_joined() {
    let body = "data: {\"delta\": \"Hé\"}\n\ndata: {\"usage\": {\"in\": 1}}\n\ndata: {\"delta\": \"llo\", \"usage\": {\"in\": 3}}\n\n\
                data: {\"tool\": {\"name\": \"a\"}}\n\ndata: [DONE]\n\n";
    let mapping = json!({"output": "/*/delta", "usage": {"input_tokens": "/*/usage/in"},
                         "calls": {"path": "/*/tool", "name": "/name"}});
    let case = read_as(mapping.clone(), Some("text/event-stream"), body.as_bytes()).unwrap();
    assert_eq!(case["final_output"]["content"], "Héllo");
    assert_eq!(case["usage"]["input_tokens"], 3);
    assert_eq!(case["events"][0]["tool"], "a");
    let mut named = mapping;
    named["stream"] = json!("jsonl");
    let lines = "{\"delta\": \"a\"}\n{\"delta\": null}\n{\"delta\": \"b\"}\n";
    assert_eq!(read_as(named, None, lines.as_bytes()).unwrap()["final_output"]["content"], "ab");
}

#[test]
fn content_parts_are_joined_and_null_is_an_empty_text() {
    let parts = json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]});
    let case = read(json!({"output": "/content"}), &parts).unwrap();
    assert_eq!(case["final_output"]["content"], "ab");
    assert_eq!(read(json!({"output": "/content"}), &json!({"content": null})).unwrap()["events"], json!([]));
    assert_eq!(read(json!({"output": ""}), &json!("plain")).unwrap()["final_output"]["content"], "plain");
}
