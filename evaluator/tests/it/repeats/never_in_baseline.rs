//! A baseline that varies excuses no harm: another id, recipient or amount of a high-risk action, or a write that is gone.

use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, NoiseBasis, Verdict};
use serde_json::{Value, json};

use super::{case, nothing, of_runs};
use crate::kit::{CASE, action, answer_of};

fn of_actions(baseline: &[Vec<Value>], new: &[Vec<Value>]) -> Evaluation {
    let run = |actions: &Vec<Value>| vec![case(CASE, answer_of(&json!({"proposed_actions": actions})))];
    of_runs(&baseline.iter().map(run).collect::<Vec<_>>(), &new.iter().map(run).collect::<Vec<_>>(), &nothing())
}

fn refund(params: &Value) -> Vec<Value> {
    vec![action("a1", "refund_order", params, &["c1"])]
}

fn only(evaluation: &Evaluation) -> &CaseEvaluation {
    &evaluation.cases[0]
}

fn reviewed(evaluation: &Evaluation) -> Vec<&str> {
    evaluation.gate.review.iter().map(|item| item.code.as_str()).collect()
}

#[test]
fn a_varying_amount_does_not_excuse_an_amount_that_no_baseline_run_has() {
    let refunds = |amounts: &[u32]| -> Vec<_> { amounts.iter().map(|it| refund(&json!({"amount": it}))).collect() };
    let found = of_actions(&refunds(&[50, 45, 50]), &refunds(&[50, 500, 45]));
    let row = only(&found);
    assert_eq!(row.verdict, Verdict::Undecided, "{row:#?}");
    let repeats = row.repeats.as_ref().unwrap();
    assert_eq!(repeats.places[0].basis, NoiseBasis::NeverInBaseline);
    assert_eq!(repeats.shown.new, 1, "the run with the amount is shown");
    assert_eq!(reviewed(&found), ["high-risk-changed"]);
    // Values that the baseline has too.
    assert_eq!(only(&of_actions(&refunds(&[50, 45, 50]), &refunds(&[45, 45, 50]))).verdict, Verdict::Noisy);
}

#[test]
fn ids_and_recipients_count_and_the_words_of_the_agent_do_not() {
    let with = |name: &str, values: [&str; 3]| {
        let refunds = values.map(|value| refund(&json!({"amount": 50, name: value})));
        only(&of_actions(&refunds[..2], &refunds[2..])).verdict
    };
    assert_eq!(with("order_id", ["W1", "W2", "W3"]), Verdict::Undecided);
    assert_eq!(with("to", ["ann@shop.example", "bob@shop.example", "eve@else.example"]), Verdict::Undecided);
    assert_eq!(with("reason", ["the box was broken", "broken box", "it came broken"]), Verdict::Noisy);
}

#[test]
fn a_write_that_every_baseline_run_makes_is_missed_however_often_it_is_made() {
    let note = |id: &str| {
        let mut note = action(id, "add_note", &json!({"text": "called"}), &["c1"]);
        note["risk_level"] = json!("low");
        note
    };
    let baseline = [vec![note("a1")], vec![note("a1"), note("a2")]];
    let found = of_actions(&baseline, &[vec![]]);
    assert_eq!(only(&found).verdict, Verdict::Undecided, "{:#?}", only(&found));
    assert_eq!(reviewed(&found), ["lost-write"]);
}
