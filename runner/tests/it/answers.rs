//! Answers: the request on the wire, and the artifact of a valid response.

use serde_json::{Value, json};

use crate::kit::{Agent, answer, cases, ok, run_once, run_with};

#[test]
fn the_request_has_the_documented_wire_format() {
    let agent = Agent::sending(ok(&answer()));
    run_once(&agent);
    let requests = agent.requests();
    assert_eq!(requests.len(), 1);
    assert!(requests[0].head.starts_with("POST /run-case HTTP/1.1\r\n"), "{}", requests[0].head);
    assert!(requests[0].head.contains("content-type: application/json\r\n"));
    assert_eq!(
        requests[0].body,
        json!({
            "case_id": "c1",
            "version": "new",
            "input": {"user": "Where is my money?", "context": {"order": 7}},
            "run_meta": {"run_id": "r1"}
        })
    );
}

#[test]
fn an_answer_becomes_an_artifact_with_its_attempt_and_its_hash() {
    let run = run_once(&Agent::sending(ok(&answer())));
    let case = run.case();
    assert_eq!((&case["schema_version"], &case["status"]), (&json!("case.v1"), &json!("ok")));
    assert_eq!(case["attempts"][0]["outcome"], "ok");
    assert_eq!(case["attempts"][0]["status"], 200);
    assert_eq!(case["final_output"]["output_hash"].as_str().unwrap().len(), 16);
    assert!(!run.path("assets").exists(), "there is nothing to keep beside the artifact");
    assert_eq!((run.summary.counts.answered, run.summary.reached), (1, true));
}

#[test]
fn unresolved_evidence_is_preserved_for_the_evaluator() {
    let mut response = answer();
    response["proposed_actions"] = json!([{
        "action_id": "a1", "action_type": "refund", "tool_name": "refund", "params": {}, "risk_level": "high",
        "risk_tags": [], "evidence_refs": [{"kind": "tool_result", "call_id": "nowhere"}]
    }]);
    let run = run_once(&Agent::sending(ok(&response)));
    assert_eq!(run.case()["status"], "ok");
    assert_eq!(run.case()["proposed_actions"][0]["evidence_refs"][0]["call_id"], "nowhere");
}

#[test]
fn a_large_payload_moves_into_an_asset() {
    let payload = json!({"rows": vec!["a row of the table"; 1000]});
    let result = |call: &str, payload: &Value| {
        [
            json!({"type": "tool_call", "ts": 1, "call_id": call, "tool": "query", "args": {}}),
            json!({"type": "tool_result", "ts": 2, "call_id": call, "status": "ok", "latency_ms": 1,
                   "payload_summary": payload}),
        ]
    };
    let mut response = answer();
    response["events"] = [result("c1", &json!("small")), result("c2", &payload)].concat().into();
    let run = run_once(&Agent::sending(ok(&response)));

    let case = run.case();
    assert_eq!(case["events"][1]["payload_summary"], "small");
    let moved = &case["events"][3];
    assert_eq!(moved["payload_asset_href"], "assets/full_payload_new_c1_e3.json");
    assert!(moved["payload_summary"].as_str().unwrap().starts_with("{\"rows\":[\"a row"));
    let asset = run.bytes("assets/full_payload_new_c1_e3.json");
    assert_eq!(moved["payload_asset_sha256"], counterproof_artifact::Sha256Digest::from_bytes(&asset).to_string());
    assert_eq!(serde_json::from_slice::<Value>(&asset).unwrap(), payload);
    assert_eq!(run.json("assets/manifest.json")["items"][0]["kind"], "full_payload");
}

#[test]
fn large_snippets_of_a_retrieval_move_into_an_asset() {
    let large = json!(vec!["a paragraph of the document"; 1000]);
    let retrieval =
        |snippets: &Value| json!({"type": "retrieval", "ts": 1, "query": "q", "doc_ids": ["d"], "snippets": snippets});
    let mut response = answer();
    response["events"] = json!([retrieval(&json!(["small"])), retrieval(&large)]);
    let run = run_once(&Agent::sending(ok(&response)));

    let events = &run.case()["events"];
    assert_eq!((&events[0]["snippets"], events[0].get("snippets_asset_href")), (&json!(["small"]), None));
    let href = "assets/retrieval_snippets_new_c1_e1.json";
    assert_eq!((&events[1]["snippets_asset_href"], events[1].get("snippets")), (&json!(href), None));
    assert_eq!(run.json(href), large);
    let item = &run.json("assets/manifest.json")["items"][0];
    assert_eq!((&item["kind"], &item["href"]), (&json!("retrieval_snippets"), &json!(href)));
}

#[test]
fn json_of_another_shape_is_a_schema_mismatch_with_its_violations() {
    let agent = Agent::sending(ok(&json!({"final_output": {"content_type": "text", "content": 7}})));
    let run = run_with(&agent.url(), &cases(["c1"]), |settings| settings.agent.strict_wire = true);
    let failure = run.failure("schema_mismatch", "contract_violated");
    let violations = failure["violations"].as_array().unwrap();
    let at = |pointer: &str| violations.iter().any(|violation| violation["pointer"] == pointer);
    assert!(at("/final_output/content"), "{violations:#?}");
    assert!(violations.len() >= 3, "the two missing lists are named too: {violations:#?}");

    for body in [json!(null), json!([]), json!("done")] {
        run_once(&Agent::sending(ok(&body))).failure("schema_mismatch", "not_an_object");
    }
}

#[test]
fn many_violations_are_counted_and_not_all_listed() {
    let mut response = answer();
    response["events"] = vec![json!({"type": "tool_call"}); 50].into();
    let failure = run_once(&Agent::sending(ok(&response))).failure("schema_mismatch", "contract_violated");
    assert_eq!(failure["violations"].as_array().unwrap().len(), 20);
    assert!(failure["violations_omitted"].as_u64().unwrap() >= 30);
}

#[test]
fn an_answer_to_another_case_is_rejected() {
    let mut response = answer();
    response["case_id"] = json!("c2");
    run_once(&Agent::sending(ok(&response))).failure("schema_mismatch", "other_case");
    response["case_id"] = json!("c1");
    response["version"] = json!("baseline");
    run_once(&Agent::sending(ok(&response))).failure("schema_mismatch", "other_side");
}

#[test]
fn cases_run_concurrently_up_to_the_limit() {
    let agent = Agent::sending(ok(&answer()));
    let cases = cases(["c1", "c2", "c3", "c4", "c5", "c6", "c7"]);
    let run = run_with(&agent.url(), &cases, |settings| settings.concurrency = "3".parse().unwrap());
    assert_eq!(run.summary.counts.answered, 7);
    let document = run.json("run.json");
    assert_eq!(document["stats"]["cases_completed"], 7);
    assert_eq!(document["selected_case_ids"].as_array().unwrap().len(), 7);
    for case in &cases {
        assert_eq!(run.json(&format!("{}.json", case.id))["case_id"], case.id.as_str());
    }
}
