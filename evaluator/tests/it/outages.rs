//! Outages that look like answers: the case counts as not answered, and the night is not judged by what is left.

use counterproof_artifact::Side;
use counterproof_artifact::evaluation::{Evaluation, GateOutcome, Verdict};
use counterproof_evaluator::Request;
use serde_json::{Value, json};

use crate::kit::{Pair, answer_of, step};

const QUOTA: &str = "You exceeded your current quota, please check your plan and billing details.";

/// An answer with a text and calls of these tools.
fn saying(text: &str, tools: &[&str]) -> Value {
    let call = |(number, tool): (usize, &&str)| step(&format!("c{number}"), tool, &json!({}), &json!({}));
    let events = tools.iter().enumerate().flat_map(call).collect::<Vec<_>>();
    answer_of(&json!({"events": events, "final_output": {"content_type": "text", "content": text}}))
}

/// A night of cases in which the baseline reads the order and answers, and so does new except in the first cases.
fn night(cases: usize, odd: usize, answer: &Value) -> Pair {
    (0..cases).fold(Pair::empty(), |pair, number| {
        let usual = saying(&format!("Order {number} is on its way."), &["get_order"]);
        let new = if number < odd { answer } else { &usual };
        pair.with(Side::Baseline, &format!("c{number:03}"), &usual).with(Side::New, &format!("c{number:03}"), new)
    })
}

fn broken(evaluation: &Evaluation) -> usize {
    let is_outage = |code: &str| code == "answer-outage";
    let cases = evaluation.cases.iter().filter(|case| is_outage(case.reasons.first().map_or("", |it| &it.code)));
    cases.filter(|case| case.verdict == Verdict::Broken && case.unconfirmed).count()
}

#[test]
fn a_providers_quota_message_is_the_answer_of_13_of_114_cases() {
    let evaluation = night(114, 13, &saying(QUOTA, &[])).evaluation();
    assert_eq!(broken(&evaluation), 13);
    // So many cases without an answer are a fall of the suite, as with runner errors.
    assert_eq!(evaluation.gate.outcome, GateOutcome::Failed);
    let fewer = night(114, 4, &saying(QUOTA, &[])).evaluation();
    assert_eq!(fewer.gate.outcome, GateOutcome::NotEnoughData, "although 96 % of the cases were compared");
    let [notice] = &evaluation.notices[..] else { panic!("{:?}", evaluation.notices) };
    assert_eq!((notice.code.as_str(), notice.case_ids.len()), ("answer-outage", 13));
    assert_eq!(notice.message, format!("13 of 114 answers are the same text: “{QUOTA}”"));
    let reviewed = evaluation.gate.review.iter().filter(|item| item.code == "answer-outage");
    assert_eq!(reviewed.filter_map(|item| item.case_id.as_ref()).count(), 13);
    let compared = evaluation.gate.rules.iter().find(|rule| rule.code == "compared").unwrap();
    assert_eq!(compared.actual, 101);
}

#[test]
fn one_quota_message_without_the_usual_calls_is_one_case_without_an_answer() {
    let evaluation = night(10, 1, &saying(QUOTA, &[])).evaluation();
    assert_eq!((broken(&evaluation), evaluation.notices.len()), (1, 0));
    // The other nine are compared as usual.
    assert_eq!(evaluation.gate.outcome, GateOutcome::NotJudged);
    assert_eq!(evaluation.gate.review[0].code, "answer-outage");
    // With its calls, the agent may speak of the quota of its user.
    assert_eq!(broken(&night(10, 1, &saying(QUOTA, &["get_order"])).evaluation()), 0);
}

#[test]
fn the_same_polite_text_in_several_answers_is_no_outage() {
    let polite = saying("Thank you, all is done.", &["get_order"]);
    let evaluation = night(10, 5, &polite).evaluation();
    assert_eq!((broken(&evaluation), evaluation.notices.len()), (0, 0));
}

#[test]
fn the_same_text_without_the_usual_calls_is_an_outage_from_three_cases_on() {
    let lost = saying("Something went wrong.", &[]);
    for (cases, expected) in [(1, 0), (2, 0), (3, 3), (10, 10)] {
        let evaluation = night(10, cases, &lost).evaluation();
        assert_eq!((broken(&evaluation), evaluation.notices.len()), (expected, usize::from(expected > 0)), "{cases}");
    }
}

#[test]
fn an_outage_of_a_deterministic_agent_fails_the_gate() {
    let pair = night(10, 3, &saying(QUOTA, &[]));
    let request = Request { is_deterministic: true, ..pair.request() };
    let gate = crate::kit::compare(&request).gate;
    assert_eq!(gate.outcome, GateOutcome::Failed);
}
