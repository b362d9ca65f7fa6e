//! A fall of a named suite, and runs of one side that differ among themselves.

use counterproof_artifact::evaluation::{Evaluation, GateOutcome, GateRule, GateScope};
use counterproof_evaluator::gate_headline;
use serde_json::json;

use super::{RunOf, case, of_runs, saying};

/// Runs of two suites, twelve and twenty-four cases: whether a case of a suite is solved in a run.
fn runs(number: usize, solves: impl Fn(&str, usize, usize) -> bool) -> Vec<RunOf> {
    let suites = [("refunds", 12), ("orders", 24)];
    let run = |run: usize| -> RunOf {
        let of_suite = |(suite, cases): (&str, usize)| -> RunOf {
            let text = |index: usize| saying(if solves(suite, index, run) { "50" } else { "40" });
            (0..cases).map(|index| case(&format!("{suite}-{index:02}"), text(index))).collect()
        };
        suites.into_iter().flat_map(of_suite).collect()
    };
    (0..number).map(run).collect()
}

fn compared(baseline: &[RunOf], new: &[RunOf]) -> Evaluation {
    of_runs(baseline, new, &json!({"must_include": ["50"]}))
}

fn suite_rules(evaluation: &Evaluation) -> Vec<&GateRule> {
    evaluation.gate.rules.iter().filter(|rule| rule.code == "suite_fell").collect()
}

/// Each case fails in one run of five, and another one in each.
fn usually(index: usize, run: usize) -> bool {
    index % 5 != run
}

#[test]
fn a_named_suite_that_falls_fails_the_gate_by_its_name() {
    let baseline = runs(5, |_, index, run| usually(index, run));
    // Two further failures in each case of one suite.
    let new = runs(5, |suite, index, run| {
        usually(index, run) && (suite != "refunds" || ((index + 1) % 5 != run && (index + 2) % 5 != run))
    });
    let evaluation = compared(&baseline, &new);
    let scoped = suite_rules(&evaluation).into_iter().filter(|rule| rule.scope.is_some());
    let fell: Vec<_> = scoped.map(|rule| (rule.scope.clone().unwrap(), !rule.passed)).collect();
    let suite = |name: &str| GateScope::Suite(name.to_owned());
    assert_eq!(fell, [(suite("orders"), false), (suite("refunds"), true)]);
    assert_eq!(evaluation.gate.outcome, GateOutcome::Failed);
    assert!(gate_headline(&evaluation).contains("suite refunds solves fewer cases"), "{}", gate_headline(&evaluation));
}

#[test]
fn suites_share_half_of_the_level() {
    let equal = runs(5, |_, index, run| usually(index, run));
    let evaluation = compared(&equal, &equal);
    let levels: Vec<_> = suite_rules(&evaluation).iter().map(|rule| rule.test.unwrap().level).collect();
    // 2 % of nights are for lost cases.
    assert_eq!(levels, [0.015, 0.015, 0.015]);
    assert!(suite_rules(&evaluation).iter().all(|rule| rule.passed));
}

#[test]
fn one_bad_hour_is_named_and_fails_nothing() {
    let baseline = runs(5, |_, index, run| usually(index, run));
    // Nearly everything fails in the third run.
    let new = runs(5, |_, index, run| usually(index, run) && (run != 2 || index % 6 == 0));
    let evaluation = compared(&baseline, &new);
    let notice = &evaluation.notices[0];
    assert_eq!(notice.code, "bad-hour");
    assert!(
        notice.message.starts_with(
            "the runs of new differ among themselves: a bad hour? `run-2` solves 5 cases; whole runs are compared"
        ),
        "{}",
        notice.message
    );
    assert_eq!(evaluation.gate.outcome, GateOutcome::Passed, "{:#?}", evaluation.gate.rules);
    // If all runs of new are worse, whole runs show it.
    let worse =
        runs(5, |_, index, run| usually(index, run) && (run == 2 || index % 3 != 0) && (run != 2 || index % 6 == 0));
    let evaluation = compared(&baseline, &worse);
    assert_eq!(evaluation.notices[0].code, "bad-hour");
    assert_eq!(evaluation.gate.outcome, GateOutcome::Failed, "{:#?}", evaluation.gate.rules);
}
