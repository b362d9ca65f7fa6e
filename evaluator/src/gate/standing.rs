//! The standing of each case in the gate, and the one order of cases that all outputs share: convicted cases first, then cases that
//! are worse but unconfirmed, then the others. Within each group, the most severe case is first. The very first case is the most
//! harmful one of the first group.

use std::cmp::Reverse;
use std::collections::HashMap;

use counterproof_artifact::CaseId;
use counterproof_artifact::evaluation::{
    Bound, CaseEvaluation, CaseMeasure, Evaluation, Gate, GateRule, Harm, MeasureCode, Verdict,
};

use super::review::{ReviewCode, ReviewSet};
use super::rules::{AddedCase, GateCase, Measure};
use crate::judge::ReasonCode;

/// The violated maximums of a gate, and the review items by which they count cases.
#[derive(Debug)]
pub struct ViolatedRules<'a> {
    rules: Vec<&'a GateRule>,
    review: HashMap<&'a CaseId, ReviewSet>,
}

impl<'a> ViolatedRules<'a> {
    /// The violated maximums of a gate.
    pub fn new(gate: &'a Gate) -> Self {
        let rules = gate.rules.iter().filter(|rule| !rule.passed && rule.bound == Bound::AtMost).collect();
        Self { rules, review: ReviewSet::by_case(&gate.review) }
    }

    /// The first rule that counts a case.
    pub fn first(&self, case: &CaseEvaluation) -> Option<&'a GateRule> {
        if self.rules.is_empty() {
            return None;
        }
        let judged = self.judged(case);
        self.rules.iter().copied().find(|rule| counts(rule, case, &judged))
    }

    /// Whether a violated maximum counts a case.
    pub(crate) fn is_counted(&self, rule: &GateRule, case: &CaseEvaluation) -> bool {
        rule.bound == Bound::AtMost && counts(rule, case, &self.judged(case))
    }

    fn judged<'c>(&self, case: &'c CaseEvaluation) -> GateCase<'c> {
        let review = self.review.get(&case.case_id).copied().unwrap_or_default();
        GateCase { tags: &case.tags, suite: case.suite.as_deref(), ..GateCase::new(case, None, review) }
    }
}

fn counts(rule: &GateRule, case: &CaseEvaluation, judged: &GateCase<'_>) -> bool {
    if !rule.scope.as_ref().is_none_or(|scope| judged.is_in(scope)) {
        return false;
    }
    let Some(measure) = Measure::parse(&rule.code) else {
        // A rule over all cases together (`suite_fell`, `slower`) counts no single case, unless review items of its name do.
        let is_reviewed = |code| judged.review.contains(code);
        return (rule.code == "lost" && is_confirmed(case) && is_lost(case))
            || ReviewCode::parse(&rule.code.replace('_', "-")).is_some_and(is_reviewed);
    };
    // A test over all cases together shows that some of them fell, but not which.
    let is_tested = measure == Measure::Unmet && rule.test.is_some();
    measure.counts(judged) && !is_tested
}

/// The standing of a case in the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// It is worse by more than chance, or a violated rule counts it.
    Convicted,
    /// It is worse, but its runs do not exclude chance.
    Unconfirmed,
    /// Neither.
    Other,
}

/// A case with its standing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankedCase<'a> {
    /// The case.
    pub case: &'a CaseEvaluation,
    /// Its standing.
    pub standing: Standing,
    /// The first violated rule that counts it.
    pub violated: Option<&'a GateRule>,
}

impl<'a> RankedCase<'a> {
    fn new(case: &'a CaseEvaluation, violated: Option<&'a GateRule>) -> Self {
        let standing = match violated {
            Some(_) => Standing::Convicted,
            None if is_confirmed(case) => Standing::Convicted,
            None if is_unconfirmed(case) => Standing::Unconfirmed,
            None => Standing::Other,
        };
        Self { case, standing, violated }
    }

    /// Whether new is worse, or differs by more than noise without being better.
    pub(super) fn differs(&self) -> bool {
        use Verdict::{Improved, Noisy, Recovered, Unchanged};
        let is_good = matches!(self.case.verdict, Improved | Noisy | Recovered | Unchanged);
        !is_good || self.standing != Standing::Other
    }

    /// The verdict for people: `regressed`, `broken (unconfirmed)`. What may be chance is never named without the word.
    pub fn verdict(&self) -> String {
        let is_unmet = self.case.verdict == Verdict::Unchanged && self.case.is_unmet_on_new();
        let is_alone = self.case.verdict == Verdict::StillBroken
            && self.case.reasons.iter().any(|reason| ReasonCode::RunnerFailure.is_code_of(reason));
        // Without a baseline of the case, the verdict says nothing about an expectation.
        let verdict = match AddedCase::find(self.case) {
            Some(AddedCase::Good) => "new case".to_owned(),
            Some(AddedCase::Unmet) => "new case, unmet".to_owned(),
            Some(AddedCase::Unanswered) => "new case, no answer".to_owned(),
            None if is_unmet => "unmet".to_owned(),
            None if is_alone => "no answer".to_owned(),
            None => self.case.verdict.as_str().replace('_', " "),
        };
        let is_open = self.case.unconfirmed || self.standing == Standing::Unconfirmed;
        if is_open { format!("{verdict} (unconfirmed)") } else { verdict }
    }
}

/// The cases in the order of every output: the most harmful one first, then by standing and severity.
pub fn worst_first(evaluation: &Evaluation) -> Vec<RankedCase<'_>> {
    let violated = ViolatedRules::new(&evaluation.gate);
    let mut cases: Vec<_> = evaluation.cases.iter().map(|case| RankedCase::new(case, violated.first(case))).collect();
    let rank = |case: &CaseEvaluation| Verdict::WORST_FIRST.iter().position(|verdict| *verdict == case.verdict);
    let score = |case: &CaseEvaluation| case.severity.as_ref().map_or(0.0, |severity| severity.score);
    // What no test decides is most likely real where every run shows it. An invalid case cannot be compared, so it has no severity.
    let is_urgent = |ranked: &RankedCase<'_>| match ranked.standing {
        Standing::Unconfirmed => ranked.case.unconfirmed || is_lost(ranked.case),
        Standing::Convicted | Standing::Other => ranked.case.verdict == Verdict::Invalid,
    };
    // A stable sort: equal cases stay in the order of the document.
    let urgency = |ranked: &RankedCase<'_>| (ranked.standing, Reverse(is_urgent(ranked)));
    cases.sort_by(|a, b| {
        let by_severity = score(b.case).total_cmp(&score(a.case));
        urgency(a).cmp(&urgency(b)).then(by_severity).then(rank(a.case).cmp(&rank(b.case)))
    });
    // The first of the most harmful, so the severity decides among equals.
    let differing = cases.iter().enumerate().filter(|(_, ranked)| ranked.differs());
    let worst = differing.min_by_key(|(_, ranked)| (urgency(ranked), harm(ranked.case))).map(|(index, _)| index);
    if let Some(worst) = worst {
        cases[..=worst].rotate_right(1);
    }
    cases
}

/// A write that cannot be undone is worse than one with other values, than a write without evidence, than another with other values,
/// than no answer, than an answer that misses an expectation, than the rest.
fn harm(case: &CaseEvaluation) -> (u8, Option<Harm>) {
    match (case.story.harm(), case.verdict) {
        (Some(harm), _) => (0, Some(harm)),
        (None, Verdict::Broken | Verdict::StillBroken | Verdict::Missing | Verdict::Invalid) => (1, None),
        (None, _) if case.is_unmet_on_new() => (2, None),
        (None, _) => (3, None),
    }
}

/// Whether every run of the baseline solves the case, and no run of new.
pub(crate) fn is_lost(case: &CaseEvaluation) -> bool {
    case.measure(MeasureCode::Solved).is_some_and(from_always_to_never)
}

/// Whether a measure passes in every run of the baseline, and in no run of new.
pub(super) const fn from_always_to_never(measure: &CaseMeasure) -> bool {
    let (old, new) = (&measure.baseline, &measure.new);
    old.runs > 0 && old.passed == old.runs && new.runs > 0 && new.passed == 0
}

fn is_confirmed(case: &CaseEvaluation) -> bool {
    matches!(case.verdict, Verdict::Regressed | Verdict::Broken) && !case.unconfirmed
}

/// Whether a case is worse on new, with too few runs to rule out chance.
fn is_unconfirmed(case: &CaseEvaluation) -> bool {
    let is_open = |measure: &CaseMeasure| from_always_to_never(measure) || measure.is_open_fall();
    case.unconfirmed || case.repeats.iter().flat_map(|repeats| &repeats.measures).any(is_open)
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// An evaluation with these cases and these rules of the gate.
    pub(in crate::gate) fn evaluation(outcome: &str, cases: &Value, rules: &Value) -> Evaluation {
        let run = |id: &str| json!({"run_id": id, "generated_at": "2026-01-01T00:00:00Z", "runner_version": "v", "cases_selected": 8});
        serde_json::from_value(json!({
            "schema_version": "evaluation.v1", "evaluator_version": "v", "baseline": run("b"), "new": run("n"),
            "counts": {}, "gate": {"passed": outcome == "passed", "outcome": outcome, "rules": rules}, "cases": cases,
        }))
        .unwrap()
    }

    /// A case with the number of its five runs that pass, for each side.
    pub(in crate::gate) fn case(id: &str, verdict: &str, passed: [u64; 2]) -> Value {
        let rate = |passed: u64| json!({"passed": passed, "runs": 5});
        let measure = json!({
            "code": "solved", "baseline": rate(passed[0]), "new": rate(passed[1]), "p": 0.5, "corrected": 1.0,
            "tier": "watch", "more_runs": 3,
        });
        let repeats = json!({"shown": {"baseline": 0, "new": 0}, "measures": [measure]});
        json!({"case_id": id, "verdict": verdict, "reasons": [], "repeats": repeats})
    }

    pub(in crate::gate) fn rule(code: &str, actual: u64, passed: bool) -> Value {
        json!({"code": code, "bound": "at_most", "limit": 0, "actual": actual, "of": 8, "passed": passed})
    }

    fn order(evaluation: &Evaluation) -> Vec<(String, String)> {
        worst_first(evaluation).iter().map(|ranked| (ranked.case.case_id.to_string(), ranked.verdict())).collect()
    }

    fn with(mut case: Value, field: &str, value: impl Into<Value>) -> Value {
        case[field] = value.into();
        case
    }

    #[test]
    fn convicted_cases_come_before_unconfirmed_ones_whatever_their_severity() {
        let severe = json!({"score": 0.9, "parts": []});
        let cases = json!([
            with(case("changed", "changed", [5, 5]), "severity", severe.clone()),
            with(case("sometimes", "undecided", [5, 2]), "severity", severe),
            case("always", "undecided", [5, 0]),
            case("regressed", "regressed", [5, 0]),
            case("same", "unchanged", [5, 5]),
        ]);
        let pair = |id: &str, verdict: &str| (id.to_owned(), verdict.to_owned());
        assert_eq!(
            order(&evaluation("failed", &cases, &json!([rule("regressed", 1, false)]))),
            [
                pair("regressed", "regressed"),
                pair("always", "undecided (unconfirmed)"),
                pair("sometimes", "undecided (unconfirmed)"),
                pair("changed", "changed"),
                pair("same", "unchanged"),
            ]
        );
    }

    #[test]
    fn a_violated_rule_convicts_the_cases_that_it_counts() {
        let mut found = evaluation(
            "failed",
            &json!([case("a", "changed", [5, 5]), case("leaks", "changed", [5, 5]), case("acts", "changed", [5, 5])]),
            &json!([rule("signals", 1, false), rule("high_risk_changed", 1, true)]),
        );
        found.gate.review = vec![
            ReviewCode::Signal.item(Some("leaks".parse().unwrap()), "states a key", Vec::new()),
            ReviewCode::HighRiskChanged.item(Some("acts".parse().unwrap()), "refund_order newly proposed", Vec::new()),
        ];
        let ranked = worst_first(&found);
        let convicted: Vec<_> = ranked.iter().filter(|ranked| ranked.standing == Standing::Convicted).collect();
        assert_eq!(convicted.len(), 1, "{convicted:?}");
        assert_eq!((convicted[0].case.case_id.as_str(), &*convicted[0].violated.unwrap().code), ("leaks", "signals"));
    }

    #[test]
    fn a_test_over_all_cases_convicts_no_single_case() {
        let mut fell = case("fell", "undecided", [5, 1]);
        fell["repeats"]["measures"][0]["code"] = json!("expectations");
        let test = json!({"p": 0.001, "level": 0.05, "fell": 9, "rose": 0});
        let rules = json!([with(rule("unmet", 9, false), "test", test), rule("suite_fell", 1, false)]);
        let found = evaluation("failed", &json!([fell]), &rules);
        let ranked = worst_first(&found)[0];
        assert_eq!((ranked.standing, ranked.violated), (Standing::Unconfirmed, None));
        // A number as the limit counts each of them.
        let rules = json!([rule("unmet", 9, false)]);
        assert_eq!(worst_first(&evaluation("failed", &json!([fell]), &rules))[0].standing, Standing::Convicted);
    }
}
