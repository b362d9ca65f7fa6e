//! The gate in one line, and the sentences that qualify it. Every output uses these.

use counterproof_artifact::evaluation::{CaseEvaluation, CaseMeasure, Evaluation, Gate, GateOutcome};

use super::evaluate::fails_by_default;
use super::review;
use crate::values::text;

/// The outcome of the gate and how many of its rules are met: `Gate failed: 2 of 5 rules violated`. Rules without a limit
/// are not counted, since they cannot be violated.
pub fn headline(gate: &Gate) -> String {
    let outcome = outcome(gate);
    // A comparison with half a baseline looks like any other, so the first line says it.
    match review::baseline_incomplete(gate) {
        Some(incomplete) => format!("{outcome}; {incomplete}"),
        None => outcome,
    }
}

fn outcome(gate: &Gate) -> String {
    let rules = gate.rules.iter().filter(|rule| rule.is_limited()).count();
    let violated = gate.rules.iter().filter(|rule| !rule.passed).count();
    match (gate.outcome, rules) {
        (GateOutcome::Passed, 0) => "Gate passed: no rule has a limit".to_owned(),
        (GateOutcome::Passed, 1) => "Gate passed: 1 rule met".to_owned(),
        (GateOutcome::Passed, rules) => format!("Gate passed: all {rules} rules met"),
        (GateOutcome::Failed, rules) => {
            format!("Gate failed: {violated} of {} violated", text::count(rules, "rule", "rules"))
        }
        (GateOutcome::NotEnoughData, _) => "Gate undecided: too few cases have answers on both sides".to_owned(),
        (GateOutcome::NotJudged, _) => "Not judged: no expectations and one run per side".to_owned(),
    }
}

/// What limits the meaning of the headline, one sentence each without a full stop: cases with too few runs to decide, and
/// that no expectations were judged.
pub fn qualifications(evaluation: &Evaluation) -> Vec<String> {
    let mut sentences = Vec::new();
    // A failed gate needs no such warning: its violated rules come first.
    let open = evaluation.cases.iter().filter(|case| fell_on_too_few_runs(case)).count();
    if evaluation.gate.outcome == GateOutcome::Passed && open > 0 {
        let verb = if open == 1 { "has" } else { "have" };
        sentences.push(format!(
            "{} {verb} a lower pass rate on new, with too few runs to rule out chance",
            text::count(open, "case", "cases")
        ));
    }
    if evaluation.gate.outcome == GateOutcome::NotJudged {
        sentences.push(
            "Differences alone do not show whether new is worse: add expectations to the cases, or compare several runs per side"
                .to_owned(),
        );
    } else if lacks_expectations(evaluation) {
        sentences.push("No expectations were judged; the gate only compares new with baseline".to_owned());
    }
    sentences
}

/// Whether a case has a lower pass rate on new that further runs could decide. A case that fails the gate needs no further runs.
fn fell_on_too_few_runs(case: &CaseEvaluation) -> bool {
    let is_decided = fails_by_default(case.verdict) && !case.unconfirmed;
    !is_decided && case.repeats.iter().flat_map(|repeats| &repeats.measures).any(CaseMeasure::is_open_fall)
}

/// Whether the gate rests on differences alone, because no expectation could be judged on any answer of new. Such a gate
/// cannot tell right from wrong.
pub(crate) fn lacks_expectations(evaluation: &Evaluation) -> bool {
    let is_judged = evaluation.cases.iter().any(CaseEvaluation::is_judged_on_new);
    !is_judged && evaluation.gate.outcome != GateOutcome::NotEnoughData
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterproof_artifact::evaluation::{Bound, GateRule};

    /// A gate whose rules have a limit and are met or violated as listed, and one more rule without a limit.
    fn gate(outcome: GateOutcome, met: &[bool]) -> Gate {
        let rule = |limit: Option<u64>, passed: bool| GateRule {
            code: "regressed".to_owned(),
            scope: None,
            bound: Bound::AtMost,
            limit,
            share: None,
            actual: 0,
            of: None,
            test: None,
            passed,
        };
        let rules = met.iter().map(|met| rule(Some(0), *met)).chain([rule(None, true)]).collect();
        Gate { passed: outcome == GateOutcome::Passed, outcome, rules, review: Vec::new() }
    }

    #[test]
    fn the_headline_has_the_outcome_and_counts_the_rules_with_a_limit() {
        for (outcome, met, expected) in [
            (GateOutcome::Passed, &[true, true, true][..], "Gate passed: all 3 rules met"),
            (GateOutcome::Passed, &[true], "Gate passed: 1 rule met"),
            (GateOutcome::Passed, &[], "Gate passed: no rule has a limit"),
            (GateOutcome::Failed, &[true, false, false], "Gate failed: 2 of 3 rules violated"),
            (GateOutcome::Failed, &[false], "Gate failed: 1 of 1 rule violated"),
            (GateOutcome::NotJudged, &[true], "Not judged: no expectations and one run per side"),
            (GateOutcome::NotEnoughData, &[false, true], "Gate undecided: too few cases have answers on both sides"),
        ] {
            assert_eq!(headline(&gate(outcome, met)), expected);
        }
    }
}
