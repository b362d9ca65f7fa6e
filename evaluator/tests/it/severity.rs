//! What ranks before what, from the smallest pairs that show it; and causes that cases share.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use counterproof_artifact::Side;
use counterproof_artifact::evaluation::CaseEvaluation;
use serde_json::{Value, json};

use crate::kit::{Pair, action, answer, answer_of, answer_with, failure, step};

fn severity(old: &Value, new: &Value) -> f64 {
    Pair::with_answers(old, new).row().severity.map_or(f64::NAN, |severity| severity.score)
}

fn paying(amount: u32, output: &str) -> Value {
    let read = step("c1", "read", &json!({"id": "W1"}), &json!({"sums": [50, 60]}));
    answer_of(&json!({
        "events": read,
        "proposed_actions": [action("a1", "pay", &json!({"amount": amount}), &["c1"])],
        "final_output": {"content_type": "text", "content": output},
    }))
}

/// The same with the call that carried the action out.
fn carried(amount: u32, status: &str) -> Value {
    let mut made = paying(amount, "Done.");
    let [mut call, mut result] = step("c2", "pay", &json!({"amount": amount}), &json!("no"));
    call["action_id"] = json!("a1");
    result["status"] = json!(status);
    made["events"].as_array_mut().unwrap().extend([call, result]);
    made
}

fn parts(row: &CaseEvaluation) -> Vec<&str> {
    row.severity.iter().flat_map(|severity| &severity.parts).map(|part| part.code.as_str()).collect()
}

#[test]
fn the_same_has_none_and_no_answer_has_the_most() {
    assert!(severity(&answer(), &answer()).abs() < 1e-9);
    assert!((severity(&answer(), &failure()) - 1.0).abs() < 1e-9);
    assert!(severity(&failure(), &answer()).abs() < 1e-9, "to answer again is nothing to worry about");
}

#[test]
fn what_was_done_outweighs_what_was_said() {
    let said = severity(&paying(50, "You get 50."), &paying(50, "You get 60 in 30 days."));
    let worded = severity(&paying(50, "You get 50."), &paying(50, "50 is yours."));
    let done = severity(&paying(50, "You get 50."), &paying(60, "You get 50."));
    assert!(worded.abs() < 1e-9 && said > worded && done > 4.0 * said, "{worded} {said} {done}");
}

#[test]
fn an_action_whose_call_failed_did_nothing() {
    let mut nothing = paying(60, "Done.");
    nothing["proposed_actions"] = json!([]);
    let failed = Pair::with_answers(&nothing, &carried(60, "error")).row();
    assert!(!parts(&failed).contains(&"high-risk-actions"), "{:?}", failed.severity);
    let worked = Pair::with_answers(&nothing, &carried(60, "ok")).row();
    assert_eq!(parts(&worked)[0], "high-risk-actions");
}

#[test]
fn an_invented_value_that_its_tool_refused_weighs_little() {
    let share = |status: &str| {
        let severity = Pair::with_answers(&carried(60, "ok"), &carried(777, status)).row().severity.unwrap();
        severity.parts.iter().find(|part| part.code == "ungrounded-argument").map(|part| part.share)
    };
    assert_eq!((share("ok"), share("error")), (Some(0.4), Some(0.05)));
}

#[test]
fn the_parts_give_the_score_and_the_largest_comes_first() {
    let row = Pair::with_answers(&paying(50, "You get 50."), &paying(777, "You get 777."))
        .expecting(&json!({"must_include": ["50"]}))
        .row();
    let severity = row.severity.clone().unwrap();
    assert_eq!(parts(&row), ["expectation-failed", "high-risk-actions", "ungrounded-argument", "output-numbers"]);
    let rest: f64 = severity.parts.iter().map(|part| 1.0 - part.share).product();
    assert!((severity.score - (1.0 - rest)).abs() < 1e-3, "{severity:?}");
    assert!(severity.parts.windows(2).all(|two| two[0].share >= two[1].share));
}

#[test]
fn one_change_in_many_cases_is_one_cluster() {
    let old = answer();
    let total = |total: u32| answer_with(|answer| answer["events"][1]["payload_summary"]["total"] = json!(total));
    let pair = [("a", total(60)), ("b", total(70)), ("c", total(40)), ("d", answer())]
        .into_iter()
        .fold(Pair::empty(), |pair, (id, new)| pair.with(Side::Baseline, id, &old).with(Side::New, id, &new));
    let evaluation = pair.evaluation();
    let clusters: Vec<_> =
        evaluation.clusters.iter().map(|it| (it.code.as_str(), it.place.as_str(), it.case_ids.len())).collect();
    let place = "get_order result.total";
    assert_eq!(clusters, [("tool-result-changed", place, 2), ("tool-result-changed", place, 1)], "grown, and fallen");
    for case in &evaluation.cases[..3] {
        let cluster = evaluation.clusters.iter().find(|it| it.id == case.cause.as_ref().unwrap().cluster).unwrap();
        assert!(cluster.case_ids.contains(&case.case_id));
    }
    assert_eq!(evaluation.cases[3].cause, None);
}

#[test]
fn a_failure_is_the_cause_of_a_case_that_could_not_be_run() {
    let row = Pair::with_answers(&answer(), &failure()).row();
    let cause = row.cause.unwrap();
    assert_eq!((cause.code.as_str(), cause.place.as_str()), ("runner-failure", "http_error 500"));
}
