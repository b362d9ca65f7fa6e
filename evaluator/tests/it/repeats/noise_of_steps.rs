//! Noise in the steps of several runs: what it explains, and what it does not excuse.

use counterproof_artifact::Side;
use counterproof_artifact::evaluation::{DivergenceKind, NoiseBasis, Verdict};
use serde_json::{Value, json};

use super::{RunOf, case, nothing, of_one, of_runs, refund, under_near};
use crate::kit::{CASE, action, answer_of, step};

/// Looks up an order, whose result holds a time, and refunds it, with a word of its own at the end.
fn looked_up_and_refunded(at: &str, amount: u32, output: &str) -> Value {
    let mut events = step("c1", "look", &json!({"order": "A-17"}), &json!({"at": at, "total": 50})).to_vec();
    events.extend(step("c2", "refund", &json!({"amount": amount}), &json!("done")));
    answer_of(&json!({"events": events, "final_output": {"content_type": "text", "content": output}}))
}

#[test]
fn noise_is_neither_the_first_divergence_nor_the_cause() {
    let baseline = [looked_up_and_refunded("10:00", 50, "Done."), looked_up_and_refunded("10:05", 50, "It is done.")];
    let new = [looked_up_and_refunded("11:00", 500, "All done."), looked_up_and_refunded("11:05", 500, "All is done.")];
    let row = of_one(&baseline, &new, &nothing());
    let noise: Vec<_> = row.repeats.unwrap().noise.into_iter().map(|noise| (noise.side, noise.pointer)).collect();
    let both = |pointer: &str| Side::BOTH.map(|side| (side, pointer.to_owned()));
    assert_eq!(noise, [both("/final_output/content"), both("/events/1")].concat());
    let divergence = row.first_divergence.unwrap();
    assert_eq!((divergence.kind, divergence.pointers[1].pointer.as_str()), (DivergenceKind::ToolArgs, "/events/2"));
    let cause = row.cause.unwrap();
    assert!(cause.path.iter().all(|step| step.pointer == "/events/2"), "{cause:#?}");
}

#[test]
fn if_all_differences_are_noise_the_first_is_the_divergence() {
    let baseline = [looked_up_and_refunded("10:00", 50, "Done."), looked_up_and_refunded("10:05", 50, "It is done.")];
    let row = of_one(&baseline, &[looked_up_and_refunded("11:00", 50, "All done.")], &nothing());
    assert_eq!(row.verdict, Verdict::Noisy, "{:?}", row.reasons);
    assert_eq!(row.first_divergence.unwrap().kind, DivergenceKind::ToolResult);
}

#[test]
fn a_number_beyond_its_tolerance_precedes_noise_in_the_text() {
    let baseline = [refund("a", 10.0, "You get it."), refund("b", 10.5, "It is yours.")];
    let row = under_near(&baseline, &[refund("c", 20.0, "There it goes.")], &nothing());
    assert_eq!(row.first_divergence.unwrap().kind, DivergenceKind::ToolArgs);
    assert!(row.cause.unwrap().path.iter().all(|step| step.pointer == "/events/0"));
}

/// Proposes to cancel, or nothing.
fn cancelling(cancels: bool) -> Value {
    let action = json!({"action_id": "a1", "action_type": "write", "tool_name": "cancel", "params": {"order": "A-17"},
                        "risk_level": "high", "risk_tags": [], "evidence_refs": []});
    answer_of(&json!({"proposed_actions": if cancels { vec![action] } else { vec![] }}))
}

#[test]
fn noise_of_other_cases_does_not_excuse_a_changed_action() {
    let run = |other: bool, this: bool| vec![case("other_001", cancelling(other)), case(CASE, cancelling(this))];
    let of_this = |baseline: &[RunOf], new: &[RunOf]| {
        let cases = of_runs(baseline, new, &nothing()).cases;
        cases.into_iter().find(|case| case.case_id.as_str() == CASE).unwrap()
    };
    for (before, after) in [(false, true), (true, false)] {
        let row = of_this(&[run(true, before), run(false, before)], &[run(true, after)]);
        assert_eq!(row.verdict, Verdict::Undecided, "{row:#?}");
        let place = &row.repeats.unwrap().places[0];
        assert_eq!((place.place.as_str(), place.basis), ("cancel proposed", NoiseBasis::CaseNeverSeen));
    }
    // It is noise if this case itself varies in the baseline.
    let row = of_this(&[run(true, true), run(false, false)], &[run(true, true)]);
    assert_eq!(row.verdict, Verdict::Noisy, "{row:#?}");
}

#[test]
fn the_result_of_a_call_that_is_noise_is_not_a_separate_change() {
    let answered = |calls: bool| {
        let events =
            if calls { step("c1", "look", &json!({"order": "A-17"}), &json!({"total": 50})).to_vec() } else { vec![] };
        answer_of(&json!({"events": events}))
    };
    let run = |other: bool, this: bool| vec![case("other_001", answered(other)), case(CASE, answered(this))];
    let evaluation = of_runs(&[run(true, false), run(false, false)], &[run(true, true)], &nothing());
    let row = evaluation.cases.into_iter().find(|case| case.case_id.as_str() == CASE).unwrap();
    assert_eq!(row.verdict, Verdict::Noisy, "{row:#?}");
    let places: Vec<_> = row.repeats.unwrap().places.into_iter().map(|place| place.place).collect();
    assert_eq!(places, ["tool sequence"]);
}

#[test]
fn a_call_that_carries_out_a_new_action_is_no_noise() {
    let paying = |pays: bool, looks: bool| {
        let mut events = Vec::new();
        if looks {
            events.extend(step("c1", "look", &json!({}), &json!("ok")));
        }
        if pays {
            events.extend(step("c2", "pay", &json!({"amount": 100}), &json!("paid")));
        }
        let actions = if pays { vec![action("a1", "pay", &json!({"amount": 100}), &["c2"])] } else { vec![] };
        answer_of(&json!({"events": events, "proposed_actions": actions}))
    };
    // Which tools are called varies in the baseline too: it looks, or does not.
    let row = of_one(&[paying(false, true), paying(false, false)], &[paying(true, true)], &nothing());
    assert_eq!(row.verdict, Verdict::Undecided, "{row:#?}");
    let pointers: Vec<_> = row.repeats.unwrap().noise.into_iter().map(|noise| noise.pointer).collect();
    let (call, shown) = (row.first_divergence.unwrap(), row.alignment.unwrap().operations.added);
    assert!(shown >= 2 && call.pointers.iter().all(|place| !pointers.contains(&place.pointer)), "{pointers:?}");
    assert!(call.message.contains("pay"), "{call:?}");
}
