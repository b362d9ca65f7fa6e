//! Outages that look like answers, in some or all of several runs.

use counterproof_artifact::evaluation::{Evaluation, GateOutcome, MeasureCode};
use serde_json::json;

use super::{RunOf, case, of_runs, saying};
use crate::kit::{answer_of, step};

/// Compares three runs a side of six cases. In `outages` runs of new, the provider answers the first three cases.
fn compared(outages: usize) -> Evaluation {
    let quota = saying("Rate limit reached for requests, try again in 20 s.");
    let usual = answer_of(&json!({"events": step("c1", "get_order", &json!({}), &json!({}))}));
    let run = |is_out: bool| -> RunOf {
        let answer = |number: usize| if is_out && number < 3 { quota.clone() } else { usual.clone() };
        (0..6).map(|number| case(&format!("c{number}"), answer(number))).collect()
    };
    let new: Vec<_> = (0..3).map(|number| run(number < outages)).collect();
    of_runs(&[run(false), run(false), run(false)], &new, &json!({}))
}

#[test]
fn an_outage_in_most_runs_of_three_cases_leaves_too_little_to_pass() {
    for (outages, cases) in [(3, 3), (2, 3), (1, 0)] {
        let evaluation = compared(outages);
        let named = evaluation.notices.first().map_or(0, |notice| notice.case_ids.len());
        assert_eq!(named, cases, "{outages} runs: {:?}", evaluation.notices);
        assert!(cases == 0 || !matches!(evaluation.gate.outcome, GateOutcome::Passed | GateOutcome::NotJudged));
        let reviewed = evaluation.gate.review.iter().filter(|item| item.code == "answer-outage").count();
        assert_eq!(reviewed, 3, "a single outage is shown too");
    }
    let case = &compared(1).cases[0];
    let answered = case.measure(MeasureCode::Answered).unwrap();
    assert_eq!((answered.new.passed, answered.new.runs), (2, 3), "it counts as not answered");
}
