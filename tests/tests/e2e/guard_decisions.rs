//! Decisions of policies and their answers, through a shim in front of a real server.

use serde_json::{Value, json};

use crate::guard_kit::{GuardFolder, text};

/// The field `error.data.subluminal` of an answer.
fn details(answer: &Value) -> &Value {
    &answer["error"]["data"]["subluminal"]
}

fn decisions(folder: &GuardFolder) -> Vec<Value> {
    folder.events_of("tool_call_decision").into_iter().map(|event| event["decision"].clone()).collect()
}

fn actions(folder: &GuardFolder) -> Vec<String> {
    decisions(folder).iter().map(|decision| decision["action"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn pol_001_observe_mode_never_blocks() {
    let policy = "policy_id: p\nversion: '1'\nmode: observe\nrules:\n  - {rule_id: d, kind: deny, match: {tool_name: {glob: ['*']}}}\n";
    let folder = GuardFolder::new().with_policy(policy);
    let mut client = folder.start();
    assert_eq!(text(&client.call("echo", &json!({"a": 1}))), r#"{"a":1}"#);
    client.close();
    let decision = &decisions(&folder)[0];
    assert_eq!(decision["action"], "ALLOW");
    assert_eq!((&decision["observed"]["action"], &decision["observed"]["rule_id"]), (&json!("BLOCK"), &json!("d")));
    let run = &folder.events()[0]["run"];
    assert_eq!((&run["mode"], &run["policy"]["policy_id"]), (&json!("observe"), &json!("p")));
}

#[test]
fn pol_002_the_first_rule_that_matches_decides() {
    let rules = "  - {rule_id: d, kind: deny, match: {tool_name: {glob: [echo]}}, effect: {reason_code: NO_ECHO}}\n  \
                 - {rule_id: a, kind: allow, match: {tool_name: {glob: ['*']}}}\n";
    let folder = GuardFolder::new().with_rules(rules);
    let mut client = folder.start();
    client.call("echo", &json!({}));
    client.call("size", &json!({}));
    client.close();
    let decisions = decisions(&folder);
    assert_eq!((&decisions[0]["action"], &decisions[0]["rule_id"]), (&json!("BLOCK"), &json!("d")));
    assert_eq!(decisions[0]["explain"]["reason_code"], "NO_ECHO");
    assert_eq!((&decisions[1]["action"], &decisions[1]["rule_id"]), (&json!("ALLOW"), &json!("a")));
}

#[test]
fn pol_003_a_budget_blocks_the_fourth_call() {
    let rules =
        "  - {rule_id: b, kind: budget, match: {tool_name: {glob: [echo]}}, effect: {budget: {limit_calls: 3}}}\n";
    let folder = GuardFolder::new().with_rules(rules);
    let mut client = folder.start();
    for number in 0..4 {
        client.call("echo", &json!({"number": number}));
    }
    client.close();
    assert_eq!(actions(&folder), ["ALLOW", "ALLOW", "ALLOW", "BLOCK"]);
    assert_eq!(decisions(&folder)[3]["rule_id"], "b");
}

const RATE_LIMIT: &str = "  - rule_id: r\n    kind: rate_limit\n    match: {tool_name: {glob: [echo]}}\n    effect: {rate_limit: \
                          {capacity: 2, refill_tokens: 1, refill_period_ms: 600000, on_limit: THROTTLE, backoff_ms: 500}}\n";

#[test]
fn pol_004_a_rate_limit_throttles_when_its_tokens_are_spent() {
    let folder = GuardFolder::new().with_rules(RATE_LIMIT);
    let mut client = folder.start();
    let answers: Vec<Value> = (0..5).map(|number| client.call("echo", &json!({"number": number}))).collect();
    client.close();
    assert_eq!(actions(&folder), ["ALLOW", "ALLOW", "THROTTLE", "THROTTLE", "THROTTLE"]);
    for answer in &answers[2..] {
        assert_eq!((&answer["error"]["code"], &details(answer)["backoff_ms"]), (&json!(-32082), &json!(500)));
    }
    assert_eq!(folder.events().last().unwrap()["run"]["summary"]["calls_throttled"], 3);
}

#[test]
fn pol_005_a_breaker_trips_at_the_fifth_equal_call() {
    let rules = "  - rule_id: loop\n    kind: breaker\n    match: {tool_name: {glob: [echo]}}\n    effect: {breaker: \
                 {repeat_threshold: 5, repeat_window_ms: 600000, on_trip: TERMINATE_RUN}}\n";
    let folder = GuardFolder::new().with_rules(rules);
    let mut client = folder.start();
    for _ in 0..4 {
        client.call("echo", &json!({"same": true}));
    }
    let answer = client.call("echo", &json!({"same": true}));
    assert_eq!(answer["error"]["code"], -32084, "{answer}");
    let (status, _) = client.wait();
    assert_eq!(status.code(), Some(1), "the run has ended without the client");
    assert_eq!(actions(&folder)[4], "TERMINATE_RUN");
    assert_eq!(folder.events_of("breaker_trip")[0]["breaker"]["rule_id"], "loop");
    assert_eq!(folder.events().last().unwrap()["run"]["status"], "TERMINATED");
}

#[test]
fn pol_006_the_same_call_within_the_window_is_a_duplicate() {
    let rules = "  - rule_id: once\n    kind: dedupe\n    match: {tool_name: {glob: [echo]}}\n    effect: {dedupe: \
                 {window_ms: 600000, key: args_hash}}\n";
    let folder = GuardFolder::new().with_rules(rules);
    let mut client = folder.start();
    client.call("echo", &json!({"write": 1}));
    let answer = client.call("echo", &json!({"write": 1}));
    client.call("echo", &json!({"write": 2}));
    client.close();
    assert_eq!(actions(&folder), ["ALLOW", "BLOCK", "ALLOW"]);
    assert_eq!(
        (&details(&answer)["rule_id"], &details(&answer)["reason_code"]),
        (&json!("once"), &json!("DEDUPE_DUPLICATE"))
    );
}

#[test]
fn pol_007_a_tag_adds_a_risk_class_for_later_rules() {
    let rules = "  - {rule_id: t, kind: tag, match: {tool_name: {glob: [echo]}}, effect: {tag: {add_risk_class: [write_like]}}}\n  \
                 - {rule_id: d, kind: deny, match: {risk_class: [write_like]}}\n";
    let folder = GuardFolder::new().with_rules(rules);
    let mut client = folder.start();
    client.call("echo", &json!({}));
    client.call("size", &json!({}));
    client.close();
    assert_eq!(actions(&folder), ["BLOCK", "ALLOW"]);
    assert_eq!(folder.events_of("tool_call_start")[0]["call"]["tags"], json!(["write_like"]));
}

#[test]
fn pol_008_the_bytes_out_of_a_refused_call_are_those_of_its_answer() {
    let folder = GuardFolder::new().with_rules("  - {rule_id: d, kind: deny, match: {tool_name: {glob: [echo]}}}\n");
    let mut client = folder.start();
    client.send_request("tools/call", &json!({"name": "echo"}));
    let line = client.receive_line().unwrap();
    client.close();
    assert_eq!(folder.events_of("tool_call_end")[0]["bytes_out"], line.len());
}

#[test]
fn err_001_a_blocked_call_has_the_code_and_the_details() {
    let folder = GuardFolder::new().with_rules("  - {rule_id: d, kind: deny, match: {tool_name: {glob: [echo]}}}\n");
    let mut client = folder.start();
    let answer = client.call("echo", &json!({"b": 2, "a": 1}));
    client.close();
    assert_eq!(answer["error"]["code"], -32081);
    let details = details(&answer);
    assert_eq!(answer["error"]["message"], details["summary"]);
    assert_eq!((&details["action"], &details["rule_id"]), (&json!("BLOCK"), &json!("d")));
    for field in ["v", "reason_code", "summary", "run_id", "call_id", "server_name", "tool_name", "args_hash"] {
        assert!(details[field].is_string(), "{field} in {details}");
    }
    for field in ["policy_id", "policy_version", "policy_hash"] {
        assert!(details["policy"][field].is_string(), "policy.{field} in {details}");
    }
    let end = &folder.events_of("tool_call_end")[0];
    assert_eq!((&end["error"]["class"], &end["call"]["call_id"]), (&json!("policy_block"), &details["call_id"]));
}

#[test]
fn err_002_a_throttled_call_has_the_code_and_the_backoff() {
    let folder = GuardFolder::new().with_rules(RATE_LIMIT);
    let mut client = folder.start();
    client.call("echo", &json!({"n": 1}));
    client.call("echo", &json!({"n": 2}));
    let answer = client.call("echo", &json!({"n": 3}));
    client.close();
    assert_eq!((&answer["error"]["code"], &details(&answer)["action"]), (&json!(-32082), &json!("THROTTLE")));
    assert_eq!(details(&answer)["backoff_ms"], decisions(&folder)[2]["backoff_ms"]);
}

#[test]
fn err_003_a_rejected_call_has_the_code_and_a_hint() {
    let policy = "policy_id: p\nversion: '1'\nmode: control\nrules:\n  - rule_id: b\n    kind: budget\n    match: {}\n    \
                  effect: {budget: {limit_calls: 1, on_exceed: REJECT_WITH_HINT, hint_text: Finish with what you have.}}\n";
    let folder = GuardFolder::new().with_policy(policy);
    let mut client = folder.start();
    client.call("echo", &json!({}));
    let answer = client.call("echo", &json!({}));
    client.close();
    assert_eq!(answer["error"]["code"], -32083);
    let hint = &details(&answer)["hint"];
    assert_eq!((&hint["hint_text"], &hint["hint_kind"]), (&json!("Finish with what you have."), &json!("BUDGET")));
    assert!(hint["suggested_args"].is_null() || hint["suggested_args"].is_object());
    // The text of the error is all that a model may see of it.
    assert_eq!(answer["error"]["message"], "The budget of rule `b` is spent\nFinish with what you have.");
    assert_eq!(answer["error"]["message"], details(&answer)["summary"]);
    assert_eq!(folder.events_of("hint_issued").len(), 1);
}

#[test]
fn a_policy_chooses_the_codes_and_the_form_of_refusals() {
    let rules = "  - {rule_id: d, kind: deny, match: {tool_name: {glob: [echo]}}}\nresponses: ";
    let folder = GuardFolder::new().with_rules(&format!("{rules}{{codes: {{blocked: -31001}}}}\n"));
    let mut client = folder.start();
    assert_eq!(client.call("echo", &json!({}))["error"]["code"], -31001);
    client.close();
    let folder = GuardFolder::new().with_rules(&format!("{rules}{{deny_as: tool_result}}\n"));
    let mut client = folder.start();
    let answer = client.call("echo", &json!({}));
    assert_eq!((&answer["result"]["isError"], &answer["result"]["resultType"]), (&json!(true), &Value::Null));
    client.close();
}

#[test]
fn a_policy_that_does_not_parse_ends_with_2_before_the_server_starts() {
    let folder = GuardFolder::new().with_policy("policy_id: p\nversion: '1'\nmode: strict\nrules: []\n");
    let marker = folder.sandbox.path("started");
    let mut command = folder.command_of(&["touch", marker.as_str()]);
    let output = command.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("policy.yaml:3:7") && stderr.contains("strict"), "{stderr}");
    assert!(output.stdout.is_empty() && !marker.exists());
}

#[test]
fn a_retry_with_answers_for_the_server_is_the_same_call() {
    let rules = "  - {rule_id: b, kind: budget, match: {}, effect: {budget: {limit_calls: 1}}}\n  \
                 - {rule_id: once, kind: dedupe, match: {}, effect: {dedupe: {window_ms: 600000, key: args_hash}}}\n";
    let folder = GuardFolder::new().with_rules(rules);
    let mut client = folder.start();
    let asked = client.call("ask", &json!({"a": 1}));
    assert_eq!(asked["result"]["resultType"], "input_required");
    let state = &asked["result"]["requestState"];
    let params = json!({"name": "ask", "arguments": {"a": 1}, "inputResponses": {"q": {}}, "requestState": state});
    assert_eq!(text(&client.request("tools/call", &params)), "answered");
    assert_eq!(client.request("tools/call", &params)["error"]["code"], -32081, "another retry is another call");
    client.close();
    assert_eq!(folder.events_of("tool_call_start").len(), 2);
}
