//! Whether the two sides were asked the same: only then is a difference the agent's.

use counterproof_artifact::Side;
use counterproof_artifact::evaluation::{Evaluation, GateOutcome, Verdict};
use counterproof_evaluator::flipped_cases;
use serde_json::{Value, json};

use crate::kit::{CASE, Pair, answer, answer_of, step};

fn notices(evaluation: &Evaluation) -> Vec<(&str, &str)> {
    evaluation.notices.iter().map(|notice| (notice.code.as_str(), notice.message.as_str())).collect()
}

/// An answer with this output and no action.
fn saying(text: &str) -> Value {
    answer_of(&json!({"final_output": {"content_type": "text", "content": text}, "proposed_actions": []}))
}

/// Cases that both sides answer alike, of which the first are edited.
fn night(cases: usize, edited: usize) -> Pair {
    let id = |number: usize| format!("c{number:03}");
    let pair = (0..cases).fold(Pair::empty(), |pair, number| {
        pair.with(Side::Baseline, &id(number), &answer()).with(Side::New, &id(number), &answer())
    });
    (0..edited).fold(pair, |pair, number| pair.editing(&id(number)))
}

#[test]
fn an_edited_case_is_not_compared_with_the_answer_to_its_old_input() {
    // Neither a difference nor an equal answer says anything.
    for new in [answer(), saying("No.")] {
        let pair = Pair::with_answers(&answer(), &new).editing(CASE);
        let evaluation = pair.evaluation();
        let case = &evaluation.cases[0];
        assert_eq!((case.verdict, case.unconfirmed, &case.severity), (Verdict::NotComparable, false, &None));
        assert_eq!(case.reasons[0].code, "input-changed");
        assert_eq!(
            notices(&evaluation),
            [("input-changed", "input changed in 1 of 1 case (refund_001): it is not compared")]
        );
        assert_eq!(evaluation.gate.outcome, GateOutcome::NotEnoughData);
        assert!(flipped_cases(&pair.request()).unwrap().is_empty(), "no confirmation");
    }
}

#[test]
fn edited_cases_lower_the_number_of_compared_ones_and_fail_nothing_else() {
    let compared = |evaluation: &Evaluation| {
        let rule = evaluation.gate.rules.iter().find(|rule| rule.code == "compared").unwrap();
        (rule.actual, evaluation.gate.outcome)
    };
    assert_eq!(compared(&night(10, 2).evaluation()), (8, GateOutcome::Passed));
    let more = night(10, 3).evaluation();
    assert_eq!(compared(&more), (7, GateOutcome::NotEnoughData));
    assert_eq!(counterproof_evaluator::gate_headline(&more), "Gate undecided: only 7 of 10 cases can be compared");
}

#[test]
fn a_secret_in_the_answer_to_an_edited_case_still_fails_the_gate() {
    let leak = saying("Use the key AKIAIOSFODNN7EXAMPLZ for the upload.");
    let evaluation = night(9, 0).with(Side::Baseline, CASE, &answer()).with(Side::New, CASE, &leak).editing(CASE);
    let evaluation = evaluation.evaluation();
    assert_eq!(evaluation.cases.iter().filter(|case| case.verdict == Verdict::NotComparable).count(), 1);
    assert_eq!(evaluation.gate.outcome, GateOutcome::Failed);
}

#[test]
fn settings_that_differ_are_named_before_the_verdict() {
    let pair = Pair::with_answers(&answer(), &answer())
        .with_field(Side::Baseline, "model", json!("small"))
        .with_field(Side::New, "model", json!("large"))
        // Neither changes what an agent is asked.
        .with_field(Side::New, "repo_commit", json!("1f2e3d"))
        .with_field(Side::New, "concurrency", json!(4));
    assert_eq!(
        notices(&pair.evaluation()),
        [("configuration-changed", "configuration changed: model \"small\" → \"large\"; differences may come from it")]
    );
}

/// Cases in which each side looks up an order. The orders of the first cases have other ids on new.
fn looked_up(cases: usize, other: usize) -> Pair {
    let order = |side: &str, number: usize| {
        let found = json!({"order": format!("W{side}{number}0042"), "customer": format!("{side}{number}9041")});
        answer_of(&json!({"events": step("c1", "get_order", &json!({}), &found)}))
    };
    (0..cases).fold(Pair::empty(), |pair, number| {
        let id = format!("c{number:03}");
        let new = if number < other { "8" } else { "7" };
        pair.with(Side::Baseline, &id, &order("7", number)).with(Side::New, &id, &order(new, number))
    })
}

#[test]
fn agents_that_received_other_records_stand_above_everything() {
    let evaluation = looked_up(45, 44).evaluation();
    assert_eq!(
        notices(&evaluation),
        [(
            "different-records",
            "different records in 44 of 45 cases: no id that one agent received was received by the other"
        )]
    );
    assert_eq!(evaluation.notices[0].case_ids.len(), 44);
    // A few cases with another path through the same records.
    assert_eq!(notices(&looked_up(45, 15).evaluation()), []);
    // The runner knows that it asked the same.
    assert_eq!(notices(&looked_up(45, 44).editing("none").evaluation()), []);
}
