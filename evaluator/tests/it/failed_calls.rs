//! Calls that failed: as evidence of an action, and as writes that say in words that nothing happened.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]
#![expect(
    clippy::needless_pass_by_value,
    clippy::unnecessary_wraps,
    reason = "the tests pass results as they make them"
)]

use counterproof_artifact::Side;
use counterproof_artifact::evaluation::{Evaluation, GateOutcome, Verdict};
use serde_json::{Value, json};

use crate::kit::{CASE, Pair, action, answer_of, failure, step};

fn codes(evaluation: &Evaluation) -> Vec<&str> {
    evaluation.gate.review.iter().map(|item| item.code.as_str()).collect()
}

fn counted(evaluation: &Evaluation, code: &str) -> u64 {
    evaluation.gate.rules.iter().find(|rule| rule.code == code).unwrap().actual
}

fn deterministic(pair: &Pair) -> Evaluation {
    let mut request = pair.request();
    request.is_deterministic = true;
    crate::kit::compare(&request)
}

/// A call with its result; `error` fails it.
fn call(id: &str, tool: &str, args: &Value, result: Result<Value, &str>) -> [Value; 2] {
    let mut step = step(id, tool, args, &result.clone().unwrap_or_else(|error| json!(error)));
    if result.is_err() {
        step[1]["status"] = json!("error");
    }
    step
}

/// A booking: an order is read, perhaps in vain, and a refund is tried and made.
fn refund(read: Result<Value, &str>, tries: &[Result<Value, &str>], evidence: &[&str]) -> Value {
    let mut events = vec![call("c1", "get_order", &json!({"order_id": "W12"}), read)];
    let args = json!({"order_id": "W12", "amount": 50});
    for (index, result) in tries.iter().enumerate() {
        let mut step = call(&format!("t{index}"), "refund_order", &args, result.clone());
        step[0]["action_id"] = json!("a1");
        events.push(step);
    }
    answer_of(&json!({"events": events.concat(), "proposed_actions": [action("a1", "refund_order", &args, evidence)]}))
}

fn order() -> Result<Value, &'static str> {
    Ok(json!({"order_id": "W12", "total": 50}))
}

fn refunded() -> Result<Value, &'static str> {
    Ok(json!({"order_id": "W12", "refunded": 50}))
}

#[test]
fn a_refused_earlier_try_among_good_evidence_is_not_failed_evidence() {
    let before = refund(order(), &[refunded()], &["c1"]);
    let retried = refund(order(), &[Err("Error: amount missing"), refunded()], &["c1", "t0"]);
    let only_the_try = refund(order(), &[Err("Error: amount missing"), refunded()], &["t0"]);
    for new in [retried, only_the_try] {
        let pair = Pair::with_answers(&before, &new);
        for evaluation in [pair.evaluation(), deterministic(&pair)] {
            assert!(!codes(&evaluation).contains(&"failed-evidence"), "{:?}", evaluation.gate.review);
            assert_eq!(counted(&evaluation, "failed_evidence"), 0);
        }
    }
}

#[test]
fn evidence_that_failed_throughout_is_reviewed_after_one_run_and_fails_a_deterministic_agent() {
    let before = refund(order(), &[refunded()], &["c1"]);
    let new = refund(Err("Error: no such order"), &[refunded()], &["c1"]);
    let pair = Pair::with_answers(&before, &new);
    let once = pair.evaluation();
    assert!(codes(&once).contains(&"failed-evidence"), "{:?}", once.gate.review);
    assert_eq!((counted(&once, "failed_evidence"), once.cases[0].unconfirmed), (0, true));
    assert_ne!(once.gate.outcome, GateOutcome::Failed);
    let always = deterministic(&pair);
    assert_eq!((counted(&always, "failed_evidence"), always.gate.outcome), (1, GateOutcome::Failed));
    // One good result is evidence, whatever else failed.
    let mixed = answer_with_two_reads(&new);
    let evaluation = deterministic(&Pair::with_answers(&before, &mixed));
    assert_eq!(counted(&evaluation, "failed_evidence"), 0, "{:?}", evaluation.gate.review);
}

/// The answer with a second read that succeeded, as further evidence.
fn answer_with_two_reads(answer: &Value) -> Value {
    let mut answer = answer.clone();
    let read = call("c9", "get_order", &json!({"order_id": "W12"}), order());
    let events = answer["events"].as_array_mut().unwrap();
    events.splice(0..0, read);
    let refs = answer["proposed_actions"][0]["evidence_refs"].as_array_mut().unwrap();
    refs.push(json!({"kind": "tool_result", "call_id": "c9"}));
    answer
}

#[test]
fn an_action_that_had_no_effect_needs_no_evidence() {
    let before = refund(order(), &[refunded()], &["c1"]);
    let new = refund(Err("Error: no such order"), &[Err("Error: no such order")], &["c1"]);
    let evaluation = deterministic(&Pair::with_answers(&before, &new));
    assert!(!codes(&evaluation).contains(&"failed-evidence"), "{:?}", evaluation.gate.review);
    assert!(codes(&evaluation).contains(&"high-risk-changed"), "the refund is missing");
}

#[test]
fn a_call_that_names_no_action_carries_out_the_action_with_its_tool_and_arguments() {
    let before = refund(order(), &[refunded()], &["c1"]);
    let new = refund(order(), &[Err("Error: the limit is 40")], &["c1"]);
    let unnamed = |answer: &Value| {
        let mut answer = answer.clone();
        for event in answer["events"].as_array_mut().unwrap() {
            event.as_object_mut().unwrap().remove("action_id");
        }
        answer
    };
    let named = deterministic(&Pair::with_answers(&before, &new));
    let evaluation = deterministic(&Pair::with_answers(&unnamed(&before), &unnamed(&new)));
    let story = &evaluation.cases[0].story;
    assert_eq!((story.baseline_writes, story.new_writes), (1, 0));
    assert_eq!((story.effects[0].baseline, story.effects[0].new, story.effects[0].failed), (1, 0, 1));
    assert_eq!(*story, named.cases[0].story);
    assert_eq!(evaluation.gate.rules, named.gate.rules);
}

#[test]
fn an_unnamed_retry_counts_for_its_action_also_if_the_calls_of_all_actions_are_named() {
    let mut new = refund(order(), &[Err("Error: busy"), refunded()], &["c1"]);
    new["events"][4].as_object_mut().unwrap().remove("action_id");
    let mut with_another = new.clone();
    let events = with_another["events"].as_array_mut().unwrap();
    events.splice(6..6, call("n1", "send_note", &json!({"to": "a"}), Ok(json!({"sent": true}))));
    let actions = with_another["proposed_actions"].as_array_mut().unwrap();
    actions.push(action("a2", "send_note", &json!({"to": "a"}), &["c1"]));
    let writes = |answer: &Value| deterministic(&Pair::with_answers(answer, answer)).cases[0].story.new_writes;
    assert_eq!((writes(&new), writes(&with_another)), (1, 2));
}

#[test]
fn a_write_that_says_in_words_that_it_failed_is_lost_whatever_its_status() {
    let before = refund(order(), &[refunded()], &["c1"]);
    for result in [
        json!("We could not process the refund."),
        json!("Declined by the issuer"),
        json!("Permission denied"),
        json!("timeout"),
        json!("Please try again later"),
        json!({"order_id": "W12", "status": "declined"}),
        // No such word: baseline returned an object, and this is a text.
        json!("Our team will look into it."),
    ] {
        let pair = Pair::with_answers(&before, &refund(order(), &[Ok(result.clone())], &["c1"]));
        let evaluation = pair.evaluation();
        let item = evaluation.gate.review.iter().find(|item| item.code == "high-risk-changed").unwrap();
        let words = result.as_str().unwrap_or("declined");
        assert!(item.message.contains("refund_order") && item.message.contains(words), "{}", item.message);
        assert_eq!(item.case_id.as_ref().unwrap().as_str(), CASE);
        // Like a refund that only baseline made.
        assert!(evaluation.cases[0].severity.as_ref().unwrap().score >= 0.8, "{:?}", evaluation.cases[0].severity);
        let always = deterministic(&pair);
        assert_eq!((counted(&always, "high_risk_changed"), always.gate.outcome), (1, GateOutcome::Failed), "{result}");
    }
}

#[test]
fn a_write_of_unstated_risk_that_fails_silently_is_reviewed_too() {
    let of_unstated_risk = |mut answer: Value| {
        answer["proposed_actions"][0]["risk_level"] = json!("unknown");
        answer
    };
    let before = of_unstated_risk(refund(order(), &[refunded()], &["c1"]));
    let new = of_unstated_risk(refund(order(), &[Ok(json!("Could not refund"))], &["c1"]));
    let pair = Pair::with_answers(&before, &new);
    let evaluation = pair.evaluation();
    let item = evaluation.gate.review.iter().find(|item| item.code == "lost-write").unwrap();
    assert!(item.message.contains("refund_order") && item.message.contains("Could not refund"), "{}", item.message);
    assert_eq!(deterministic(&pair).gate.outcome, GateOutcome::Failed);
}

#[test]
fn other_results_are_no_silent_failures() {
    let before = refund(order(), &[refunded()], &["c1"]);
    let same = |new: &Value| {
        let evaluation = Pair::with_answers(&before, new).evaluation();
        assert!(!codes(&evaluation).contains(&"high-risk-changed"), "{:?}", evaluation.gate.review);
    };
    // A read may mention anything, and an object may describe what happened before.
    same(&refund(Ok(json!("The bank declined the order of 50 at first.")), &[refunded()], &["c1"]));
    same(&refund(order(), &[Ok(json!({"order_id": "W12", "refunded": 50, "reason": "card declined"}))], &["c1"]));
    // JSON that is written as text is still an object. A retry that succeeded made the refund.
    same(&refund(order(), &[Ok(json!("{\"order_id\": \"W12\", \"refunded\": 50}"))], &["c1"]));
    let retried = refund(order(), &[Ok(json!("timeout")), refunded()], &["c1"]);
    let severity = Pair::with_answers(&before, &retried).row().severity.unwrap();
    assert!(severity.parts.iter().all(|part| part.code != "high-risk-actions"), "{severity:?}");
    // A tool that answers in sentences on both sides.
    let told = |text: &str| refund(order(), &[Ok(json!(text))], &["c1"]);
    let evaluation = Pair::with_answers(&told("Refund made."), &told("The refund of 50 was made.")).evaluation();
    assert!(!codes(&evaluation).contains(&"high-risk-changed"), "{:?}", evaluation.gate.review);
}

#[test]
fn failed_evidence_needs_both_answers() {
    let new = refund(Err("Error: no such order"), &[refunded()], &["c1"]);
    let evaluation = Pair::empty().with(Side::Baseline, CASE, &failure()).with(Side::New, CASE, &new).evaluation();
    assert_eq!(evaluation.cases[0].verdict, Verdict::Recovered);
    assert_eq!(counted(&evaluation, "failed_evidence"), 0);
}
