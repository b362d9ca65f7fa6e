//! Cases that new fails in every run, and the baseline in none.

use counterproof_artifact::evaluation::{Evaluation, GateOutcome, GateRule, Verdict};
use counterproof_evaluator::{GateRules, Limit};
use serde_json::json;

use super::{RunOf, case, of_runs_within, saying};

const CASES: usize = 8;

/// Compares runs of eight cases, of which the first `broken` fail in all runs of new.
fn compared(broken: usize, baseline: usize, new: usize, limits: &GateRules) -> Evaluation {
    let run = |broken: usize| -> RunOf {
        (0..CASES).map(|index| case(&format!("c{index}"), saying(if index < broken { "40" } else { "50" }))).collect()
    };
    of_runs_within(limits, &vec![run(0); baseline], &vec![run(broken); new], &json!({"must_include": ["50"]}))
}

fn convicted(evaluation: &Evaluation) -> usize {
    evaluation.cases.iter().filter(|case| case.verdict == Verdict::Regressed && !case.unconfirmed).count()
}

fn lost_rule(evaluation: &Evaluation) -> Option<&GateRule> {
    evaluation.gate.rules.iter().find(|rule| rule.code == "lost")
}

#[test]
fn each_case_that_always_fails_is_convicted_however_many_there_are() {
    for broken in 1..=CASES {
        let evaluation = compared(broken, 5, 5, &GateRules::default());
        assert_eq!((convicted(&evaluation), evaluation.gate.outcome), (broken, GateOutcome::Failed), "{broken}");
        let rule = lost_rule(&evaluation).unwrap();
        assert_eq!((rule.actual, rule.passed), (broken as u64, false), "{rule:?}");
    }
}

#[test]
fn one_baseline_run_convicts_three_of_eight_cases_and_not_one() {
    for (broken, expected) in [(1, 0), (2, 0), (3, 3), (4, 4), (6, 6), (8, 8)] {
        let evaluation = compared(broken, 1, 5, &GateRules::default());
        assert_eq!(convicted(&evaluation), expected, "{broken} of {CASES}");
        assert_eq!(lost_rule(&evaluation).unwrap().passed, expected == 0, "{broken} of {CASES}");
    }
}

#[test]
fn the_rule_can_be_switched_off() {
    let mut limits = GateRules::default();
    limits.lost = Limit::None;
    let evaluation = compared(3, 1, 5, &limits);
    assert!(lost_rule(&evaluation).is_none());
    assert_eq!(convicted(&evaluation), 0);
}

#[test]
fn nothing_lost_is_a_rule_that_is_met() {
    let rule = compared(0, 5, 5, &GateRules::default());
    let rule = lost_rule(&rule).unwrap();
    assert!(rule.passed && rule.actual == 0 && rule.test.as_ref().unwrap().expected.unwrap() < 0.01, "{rule:?}");
}
