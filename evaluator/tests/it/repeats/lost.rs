//! Cases that new fails in every run, and the baseline in none.

use std::collections::BTreeSet;

use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, GateOutcome, GateRule, Verdict};
use counterproof_evaluator::{GateRules, Limit};
use proptest::prelude::*;
use serde_json::json;

use super::{RunOf, case, of_runs_within, saying};
use crate::kit::{action, answer_of, step};

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

/// Runs of cases with a refund of high risk: on baseline, all are right. On new, a case is wrong in the runs that `wrong` names.
fn nights(baseline: usize, wrong: &[Vec<bool>]) -> Evaluation {
    let refund = |run: &str, is_wrong: bool| {
        let amount = if is_wrong { 40 } else { 50 };
        answer_of(&json!({
            "final_output": {"content_type": "text", "content": format!("{amount} EUR, as of {run}")},
            "events": step("c1", "get_order", &json!({"order_id": "W12"}), &json!({"total": 50, "deposit": 40})),
            "proposed_actions": [action("a1", "refund_order", &json!({"amount": amount}), &["c1"])],
        }))
    };
    let run = |name: &str, is_wrong: &dyn Fn(&Vec<bool>) -> bool| -> RunOf {
        let cases = wrong.iter().enumerate();
        cases.map(|(index, case_of)| case(&format!("c{index}"), refund(name, is_wrong(case_of)))).collect()
    };
    // No text is the same twice, so that the agent is not taken for a deterministic one.
    let old: Vec<_> = (0..baseline).map(|number| run(&format!("day {number}"), &|_| false)).collect();
    let new: Vec<_> = (0..wrong[0].len()).map(|number| run(&format!("night {number}"), &|case| case[number])).collect();
    of_runs_within(&GateRules::default(), &old, &new, &json!({"must_include": ["50"]}))
}

/// What a night shows: the convicted cases, those in review, and whether the gate is red.
struct Shown {
    convicted: BTreeSet<String>,
    in_review: BTreeSet<String>,
    is_red: bool,
}

impl Shown {
    fn new(evaluation: &Evaluation) -> Self {
        let is_convicted = |case: &&CaseEvaluation| case.verdict == Verdict::Regressed && !case.unconfirmed;
        let convicted = evaluation.cases.iter().filter(is_convicted).map(|case| case.case_id.to_string()).collect();
        let review = evaluation.gate.review.iter().filter_map(|item| item.case_id.as_ref());
        Self {
            convicted,
            in_review: review.map(ToString::to_string).collect(),
            is_red: evaluation.gate.outcome == GateOutcome::Failed,
        }
    }

    /// Fails if `after` shows less of the cases that pass `counts`.
    #[track_caller]
    fn assert_kept_in(self, after: &Self, counts: impl Fn(&str) -> bool) {
        let gone = |before: &BTreeSet<String>, after: &BTreeSet<String>| -> Vec<String> {
            before.difference(after).filter(|case| counts(case)).cloned().collect()
        };
        assert_eq!(gone(&self.convicted, &after.convicted), Vec::<String>::new(), "no longer convicted");
        let named = after.in_review.union(&after.convicted).cloned().collect();
        assert_eq!(gone(&self.in_review, &named), Vec::<String>::new(), "no longer in review");
        assert!(!self.is_red || after.is_red, "no longer red");
    }
}

#[test]
fn a_changed_refund_in_every_run_is_convicted_by_both_rules() {
    let wrong: Vec<_> = (0..8).map(|index| vec![index == 0; 5]).collect();
    let evaluation = nights(5, &wrong);
    for code in ["lost", "unseen_high_risk"] {
        let rule = evaluation.gate.rules.iter().find(|rule| rule.code == code).unwrap();
        assert!(!rule.passed && rule.actual == 1, "{rule:?}");
    }
    assert_eq!(Shown::new(&evaluation).convicted.len(), 1);
    // One baseline run is too few for one case, and it stays in review.
    let evaluation = nights(1, &wrong);
    assert!(Shown::new(&evaluation).in_review.contains("c0"), "{:?}", evaluation.gate.review);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn one_more_case_that_always_fails_hides_nothing(
        baseline in 1_usize..6,
        runs in 2_usize..6,
        failing in proptest::collection::vec(any::<bool>(), 2..10),
        index in any::<prop::sample::Index>(),
    ) {
        let mut wrong: Vec<Vec<bool>> = failing.iter().map(|fails| vec![*fails; runs]).collect();
        let before = Shown::new(&nights(baseline, &wrong));
        wrong[index.index(failing.len())] = vec![true; runs];
        before.assert_kept_in(&Shown::new(&nights(baseline, &wrong)), |_| true);
    }

    #[test]
    fn one_more_run_in_which_the_cases_fail_hides_nothing(
        baseline in 1_usize..6,
        runs in 2_usize..6,
        failing in proptest::collection::vec(any::<bool>(), 2..10),
    ) {
        let night = |runs: usize| -> Shown {
            Shown::new(&nights(baseline, &failing.iter().map(|fails| vec![*fails; runs]).collect::<Vec<_>>()))
        };
        night(runs).assert_kept_in(&night(runs + 1), |_| true);
    }

    #[test]
    fn one_more_failed_run_of_a_case_hides_nothing(
        baseline in prop::sample::select(vec![1_usize, 3, 5]),
        wrong in proptest::collection::vec(proptest::collection::vec(prop::bool::weighted(0.7), 5), 2..9),
        index in any::<prop::sample::Index>(),
        run in 0_usize..5,
    ) {
        let before = Shown::new(&nights(baseline, &wrong));
        let mut more = wrong.clone();
        more[index.index(wrong.len())][run] = true;
        // A case that passes now and then is judged together with the other cases.
        let always_fails = |case: &str| !wrong[case[1..].parse::<usize>().unwrap()].contains(&false);
        before.assert_kept_in(&Shown::new(&nights(baseline, &more)), always_fails);
    }
}

#[test]
fn evidence_that_fails_in_every_run_fails_the_gate_and_in_one_run_is_reviewed() {
    let answer = |run: &str, has_failed: bool| {
        let mut read = step("c1", "get_order", &json!({"order_id": "W12"}), &json!({"total": 50}));
        if has_failed {
            read[1]["payload_summary"] = json!("Error: the service is down");
        }
        answer_of(&json!({
            "final_output": {"content_type": "text", "content": format!("50 EUR, as of {run}")},
            "events": read,
            "proposed_actions": [action("a1", "refund_order", &json!({"amount": 50}), &["c1"])],
        }))
    };
    let compared = |failed_runs: usize| {
        let run = |side: &str, number: usize, has_failed: bool| -> RunOf {
            let name = format!("{side} {number}");
            (0..CASES).map(|index| case(&format!("c{index}"), answer(&name, has_failed && index == 0))).collect()
        };
        let baseline: Vec<_> = (0..5).map(|number| run("baseline", number, false)).collect();
        let new: Vec<_> = (0..5).map(|number| run("new", number, number < failed_runs)).collect();
        of_runs_within(&GateRules::default(), &baseline, &new, &json!({}))
    };
    let counted = |evaluation: &Evaluation| {
        evaluation.gate.rules.iter().find(|rule| rule.code == "failed_evidence").unwrap().actual
    };
    let is_reviewed =
        |evaluation: &Evaluation| evaluation.gate.review.iter().any(|item| item.code == "failed-evidence");
    let (once, always) = (compared(1), compared(5));
    assert_eq!((counted(&once), once.gate.outcome, is_reviewed(&once)), (0, GateOutcome::Passed, true));
    assert_eq!((counted(&always), always.gate.outcome, is_reviewed(&always)), (1, GateOutcome::Failed, true));
}
