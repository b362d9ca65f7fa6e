//! The decision about a new version for the reader of a report: whether it may ship, why, and by which cases.

use counterproof_artifact::CaseId;
use counterproof_artifact::evaluation::{Bound, Evaluation, GateOutcome, GateRule, Verdict};
use serde::{Deserialize, Serialize};

use super::headline::{self, is_alone};
use super::review;
use super::standing::{RankedCase, Standing, ViolatedRules, worst_first};
use crate::values::text;

/// Whether a version may ship.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    /// The gate fails.
    Stop,
    /// Something looks worse, and nothing decides it.
    Open,
    /// Nothing got worse.
    Go,
}

/// A violated rule of the gate, with the cases that it counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViolatedRule {
    /// What it found: `3 cases regressed`.
    pub sentence: String,
    /// The cases in the order of all outputs; empty for a rule about all cases together.
    pub case_ids: Vec<CaseId>,
}

/// The decision with its reasons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Whether the version may ship.
    pub kind: DecisionKind,
    /// The decision with its number: `Do not ship: 3 cases always fail`.
    pub headline: String,
    /// Why, in one or two sentences.
    pub why: String,
    /// The violated rules, the surest first.
    pub violated: Vec<ViolatedRule>,
    /// The cases that look worse and that nothing decides, in the order of all outputs; empty where violated rules count others.
    pub unconfirmed: Vec<CaseId>,
    /// The first case of all outputs; `None` where no case differs.
    pub worst: Option<CaseId>,
}

/// Decides about the new version, from the outcome of the gate and the cases that look worse.
pub fn decide(evaluation: &Evaluation) -> Decision {
    let ranked = worst_first(evaluation);
    let (kind, headline) = headline(evaluation, &ranked);
    let violated = violated(evaluation, &ranked);
    let is_counted = violated.iter().any(|rule| !rule.case_ids.is_empty());
    let open = ranked.iter().filter(|ranked| ranked.standing == Standing::Unconfirmed && !is_counted);
    Decision {
        kind,
        headline,
        why: why(evaluation, &ranked),
        violated,
        unconfirmed: open.map(|ranked| ranked.case.case_id.clone()).collect(),
        worst: ranked.first().filter(|first| first.differs()).map(|first| first.case.case_id.clone()),
    }
}

/// The number of baseline runs against which a case that always fails can be confirmed.
const BASELINE_RUNS: usize = 5;

/// How many baseline runs to make where more of them are needed: enough for a confirmation, or twice those there are.
pub fn wanted_baseline_runs(evaluation: &Evaluation) -> usize {
    evaluation.repeats.as_ref().map_or(0, |repeats| repeats.baseline.len() * 2).max(BASELINE_RUNS)
}

/// The most further runs per side that would decide an undecided case, where a number is known.
pub fn more_runs(evaluation: &Evaluation) -> Option<u64> {
    let measures = evaluation.cases.iter().filter_map(|case| case.repeats.as_ref()).flat_map(|case| &case.measures);
    measures.filter(|measure| measure.is_open_fall()).filter_map(|measure| measure.more_runs).max()
}

fn headline(evaluation: &Evaluation, ranked: &[RankedCase<'_>]) -> (DecisionKind, String) {
    let all = text::count(ranked.len(), "case", "cases");
    let open = with_standing(ranked, Standing::Unconfirmed);
    let convicted = with_standing(ranked, Standing::Convicted);
    let looks = |count: usize| if count == 1 { "looks" } else { "look" };
    let none_confirmed = || format!("No decision: {open} of {all} {} worse, none confirmed", looks(open));
    match evaluation.gate.outcome {
        GateOutcome::Failed => (DecisionKind::Stop, format!("Do not ship: {}", first_reason(evaluation))),
        GateOutcome::NotEnoughData => {
            (DecisionKind::Open, format!("No decision: {}", headline::undecided_by(&evaluation.gate, evaluation)))
        }
        _ if is_alone(evaluation) => (DecisionKind::Go, text::first_upper(&headline::all_good(evaluation))),
        GateOutcome::NotJudged | GateOutcome::Passed if headline::is_unconfirmed(evaluation) => {
            (DecisionKind::Open, none_confirmed())
        }
        GateOutcome::NotJudged => (DecisionKind::Open, format!("No decision: none of {all} states what is right")),
        GateOutcome::Passed => passed(evaluation, convicted, open, &all),
    }
}

/// What the surest violated rule found. The others are listed with their cases.
fn first_reason(evaluation: &Evaluation) -> String {
    if is_alone(evaluation) {
        return headline::reasons(evaluation);
    }
    let rules = surest_first(evaluation);
    let first = rules.first().map(|rule| headline::found(rule, evaluation)).unwrap_or_default();
    match rules.len() {
        0 | 1 => first,
        2 => format!("{first}, and 1 more rule is violated"),
        more => format!("{first}, and {} more rules are violated", more - 1),
    }
}

/// The violated rules. A maximum fails the gate; a missed minimum only says how much the rest is worth.
fn surest_first(evaluation: &Evaluation) -> Vec<&GateRule> {
    let mut rules: Vec<&GateRule> = evaluation.gate.rules.iter().filter(|rule| !rule.passed).collect();
    rules.sort_by_key(|rule| (rule.code != "lost", rule.bound == Bound::AtLeast));
    rules
}

fn passed(evaluation: &Evaluation, convicted: usize, open: usize, all: &str) -> (DecisionKind, String) {
    let to_review = review::changed_high_risk(&evaluation.gate);
    if convicted > 0 {
        return (DecisionKind::Open, format!("Within the limits: {convicted} of {all} got worse"));
    }
    if to_review > 0 {
        let cases = text::count(to_review, "case has", "cases have");
        return (DecisionKind::Open, format!("Review first: {cases} another high-risk action"));
    }
    // Several runs were compared, so chance explains what looks worse.
    let beyond = if open > 0 { " beyond chance" } else { "" };
    (DecisionKind::Go, format!("Nothing got worse{beyond} in {all}"))
}

fn with_standing(ranked: &[RankedCase<'_>], standing: Standing) -> usize {
    ranked.iter().filter(|ranked| ranked.standing == standing).count()
}

/// How many runs there were, then what the other cases did.
fn why(evaluation: &Evaluation, ranked: &[RankedCase<'_>]) -> String {
    let runs = match &evaluation.repeats {
        _ if is_alone(evaluation) => "There is nothing to compare with".to_owned(),
        Some(repeats) => format!(
            "{} of baseline and {} of new",
            text::count(repeats.baseline.len(), "run", "runs"),
            text::count(repeats.new.len(), "run", "runs")
        ),
        None if evaluation.deterministic => {
            "One run of each side decides, because the agent is deterministic".to_owned()
        }
        None => "Each side was run once".to_owned(),
    };
    let others: Vec<_> = ranked.iter().filter(|ranked| ranked.standing == Standing::Other).collect();
    let count = |is: &dyn Fn(Verdict) -> bool| others.iter().filter(|other| is(other.case.verdict)).count();
    let same = count(&|verdict| verdict == Verdict::Unchanged);
    let noise = count(&|verdict| verdict == Verdict::Noisy);
    let better = count(&|verdict| matches!(verdict, Verdict::Improved | Verdict::Recovered));
    let different = others.len() - same - noise - better;
    let parts = [
        (different, ["differs", "differ"]),
        (better, ["is better", "are better"]),
        (noise, ["varies as before", "vary as before"]),
        (same, ["is the same", "are the same"]),
    ];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<_> = parts.map(|(count, words)| format!("{count} {}", words[usize::from(*count != 1)])).collect();
    let rest = match (parts.is_empty(), others.len() == ranked.len()) {
        _ if is_alone(evaluation) => String::new(),
        (true, _) => String::new(),
        (false, true) => format!(" Of the cases, {}.", text::list(&parts)),
        (false, false) => format!(" Of the other cases, {}.", text::list(&parts)),
    };
    format!("{runs}.{rest}")
}

fn violated(evaluation: &Evaluation, ranked: &[RankedCase<'_>]) -> Vec<ViolatedRule> {
    let rules = ViolatedRules::new(&evaluation.gate);
    let counted = |rule: &GateRule| {
        let cases = ranked.iter().map(|ranked| ranked.case).filter(|case| rules.is_counted(rule, case));
        cases.map(|case| case.case_id.clone()).collect()
    };
    surest_first(evaluation)
        .into_iter()
        .map(|rule| ViolatedRule { sentence: headline::found(rule, evaluation), case_ids: counted(rule) })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::gate::standing::tests::{case, evaluation, rule};

    #[test]
    fn a_failed_gate_names_the_rules_with_their_cases() {
        let cases =
            json!([case("a", "regressed", [5, 0]), case("b", "unchanged", [5, 5]), case("c", "regressed", [5, 2])]);
        let found = decide(&evaluation("failed", &cases, &json!([rule("regressed", 2, false)])));
        assert_eq!(found.kind, DecisionKind::Stop);
        assert_eq!(found.headline, "Do not ship: 2 cases regressed");
        assert_eq!(found.violated.len(), 1);
        assert_eq!(found.violated[0].sentence, "2 cases regressed");
        let ids: Vec<_> = found.violated[0].case_ids.iter().map(CaseId::as_str).collect();
        assert_eq!(ids, ["a", "c"]);
        assert_eq!(found.worst.as_ref().map(CaseId::as_str), Some("a"));
    }

    #[test]
    fn the_worst_case_is_the_one_with_the_most_harm() {
        let with = |id: &str, effect: &serde_json::Value| {
            let mut case = case(id, "regressed", [5, 0]);
            case["story"] = json!({"effects": [effect]});
            case
        };
        let amount = json!([{"name": "amount", "baseline": "50", "new": "500"}]);
        let changed = with("changed", &json!({"tool": "t", "baseline": 1, "new": 1, "changed": amount}));
        let more = with("more", &json!({"tool": "t", "baseline": 0, "new": 1, "irreversible": true}));
        let cases = json!([case("none", "regressed", [5, 0]), changed, more]);
        let found = decide(&evaluation("failed", &cases, &json!([rule("regressed", 3, false)])));
        assert_eq!(found.worst.as_ref().map(CaseId::as_str), Some("more"));
    }

    #[test]
    fn what_looks_worse_in_one_run_is_no_decision() {
        let open = json!({"case_id": "a", "verdict": "regressed", "unconfirmed": true, "reasons": []});
        let other = json!({"case_id": "b", "verdict": "changed", "reasons": []});
        let found = decide(&evaluation("passed", &json!([open, other]), &json!([])));
        assert_eq!(found.kind, DecisionKind::Open);
        assert_eq!(found.headline, "No decision: 1 of 2 cases looks worse, none confirmed");
        assert_eq!(found.why, "Each side was run once. Of the other cases, 1 differs.");
        assert_eq!(found.unconfirmed.iter().map(CaseId::as_str).collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn a_passed_gate_without_a_worse_case_is_green() {
        let same = json!({"case_id": "a", "verdict": "unchanged", "reasons": []});
        let found = decide(&evaluation("passed", &json!([same]), &json!([])));
        assert_eq!((found.kind, found.headline.as_str()), (DecisionKind::Go, "Nothing got worse in 1 case"));
    }
}
