//! Limits on time, size and cost, and calls that repeat, through real files.

use counterproof_artifact::Side;
use counterproof_artifact::evaluation::{ExpectationResult, Judgement, Verdict};
use serde_json::{Value, json};

use crate::kit::{Pair, answer_of, step};

/// The keys of all limits, each with a limit that [`measured`] meets exactly and one that it exceeds.
fn limits() -> [(&'static str, Value, Value); 4] {
    [
        ("max_latency_ms", json!(1500), json!(1499.5)),
        ("max_steps", json!(3), json!(2)),
        ("max_tokens", json!(1200), json!(1199)),
        ("max_cost", json!(0.0143), json!(0.01)),
    ]
}

fn calls(count: usize) -> Vec<Value> {
    let call = |id: usize| step(&format!("c{id}"), "get_order", &json!({"id": "W1"}), &json!({"total": 50}));
    (0..count).flat_map(call).collect()
}

/// An answer that reports all quantities. A failed attempt comes first, whose time does not count.
fn measured() -> Value {
    let attempt = |number: u32, millis: u32, outcome: &str| json!({"attempt": number, "started_at": "2026-11-20T00:00:00Z", "latency_ms": millis, "outcome": outcome});
    let mut failed = attempt(1, 30_000, "runner_error");
    failed["error_class"] = json!("timeout");
    answer_of(&json!({
        "attempts": [failed, attempt(2, 1500, "ok")],
        "events": calls(3),
        "usage": {"input_tokens": 1000, "output_tokens": 200, "cached_tokens": 800, "cost": 0.0143, "currency": "USD"},
    }))
}

fn judged(expected: &Value, baseline: &Value, new: &Value) -> (Verdict, ExpectationResult, Vec<String>) {
    let mut row = Pair::with_answers(baseline, new).expecting(expected).row();
    assert_eq!(row.expectations.len(), 1, "{expected}");
    let codes = row.reasons.iter().map(|reason| reason.code.clone()).collect();
    (row.verdict, row.expectations.remove(0), codes)
}

#[test]
fn a_limit_is_met_up_to_its_value_and_unmet_above_it() {
    for (key, met, exceeded) in limits() {
        let (verdict, result, _) = judged(&json!({key: met}), &measured(), &measured());
        assert!(result.new.as_ref().is_some_and(Judgement::is_met), "{key}: {result:?}");
        assert_eq!(verdict, Verdict::Unchanged);
        let (_, result, _) = judged(&json!({key: exceeded}), &measured(), &measured());
        assert!(result.new.as_ref().is_some_and(Judgement::is_unmet), "{key}: {result:?}");
    }
}

#[test]
fn a_limit_that_new_alone_exceeds_is_a_regression_with_both_amounts() {
    let mut loop_of_calls = measured();
    loop_of_calls["events"] = json!(calls(40));
    let (verdict, result, codes) = judged(&json!({"max_steps": 10}), &measured(), &loop_of_calls);
    assert_eq!((verdict, codes[0].as_str()), (Verdict::Regressed, "expectation-failed"));
    assert_eq!(result.new.as_ref().map(Judgement::found), Some("40 steps, at most 10 steps"));
}

#[test]
fn a_limit_on_what_an_answer_does_not_report_is_undecided() {
    let silent = answer_of(&json!({"events": calls(3)}));
    for (key, met, _) in limits().into_iter().filter(|(key, ..)| *key != "max_steps") {
        let (_, result, _) = judged(&json!({key: met}), &silent, &silent);
        let new = result.new.unwrap();
        assert!(new.is_undecided() && new.found().starts_with("the answer does not report its "), "{key}: {new:?}");
        let (verdict, _, codes) = judged(&json!({key: met}), &measured(), &silent);
        assert_eq!(verdict, Verdict::Changed, "{key}");
        assert!(codes.iter().any(|code| code == "expectation-undecided"), "{key}: {codes:?}");
    }
    // The number of steps is in every answer.
    let (_, result, _) = judged(&json!({"max_steps": 3}), &silent, &silent);
    assert!(result.new.unwrap().is_met());
}

#[test]
fn a_baseline_that_repeats_calls_as_often_hides_a_loop_and_retries_are_none() {
    let found = |baseline: usize, new: usize| {
        let answer = |count: usize| answer_of(&json!({"events": calls(count)}));
        let row = Pair::with_answers(&answer(baseline), &answer(new)).row();
        row.findings.iter().any(|finding| finding.code == "repeated-call")
    };
    assert!(found(1, 30) && !found(95, 95) && !found(1, 3));
    // A repetition in another case of the baseline counts too.
    let answer = |count: usize| answer_of(&json!({"events": calls(count)}));
    let pair = [("a", 1, 30), ("b", 30, 30)].into_iter().fold(Pair::empty(), |pair, (id, baseline, new)| {
        pair.with(Side::Baseline, id, &answer(baseline)).with(Side::New, id, &answer(new))
    });
    assert!(pair.evaluation().cases.iter().all(|case| case.findings.is_empty()));
}
