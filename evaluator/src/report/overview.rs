//! What the first page says before any case: the gate with every rule, and how many cases have each verdict.

use counterproof_artifact::evaluation::{Evaluation, GateOutcome, Verdict};

use super::lists;
use super::shown;
use super::verdicts::{self, VerdictShown};
use crate::comparison::evaluation_text;

/// Width of the bar of counts, in its own units.
const BAR_WIDTH: u64 = 1000;

/// A verdict that any case has is seen in the bar, however many cases there are.
const BAR_LEAST: u64 = 6;

/// What the gate says.
#[derive(Debug, Clone)]
pub(super) struct OutcomeShown {
    /// The class of its colour.
    pub(super) class: &'static str,
    /// The sign before the sentence.
    pub(super) sign: &'static str,
    /// The sentence.
    pub(super) sentence: String,
}

/// A rule of the gate.
#[derive(Debug, Clone)]
pub(super) struct RuleShown {
    /// What it counts.
    pub(super) code: String,
    /// The count.
    pub(super) actual: String,
    /// The limit, in words.
    pub(super) limit: String,
    /// Whether it holds.
    pub(super) passed: bool,
    /// The same in a word; empty where there is no limit.
    pub(super) word: &'static str,
}

/// A rule of comparison.
#[derive(Debug, Clone)]
pub(super) struct ComparingShown {
    /// The rule.
    pub(super) rule: String,
    /// At how many places it acted.
    pub(super) matched: String,
    /// True where it matched nothing.
    pub(super) idle: bool,
}

/// A verdict's part of the bar.
#[derive(Debug, Clone)]
pub(super) struct BarPart {
    /// The verdict.
    pub(super) verdict: VerdictShown,
    /// How many cases have it.
    pub(super) count: String,
    /// Where it starts.
    pub(super) x: u64,
    /// How wide it is.
    pub(super) width: u64,
    /// The first page with these cases.
    pub(super) list: String,
}

/// What the gate says.
pub(super) fn outcome(evaluation: &Evaluation) -> OutcomeShown {
    let (class, sign) = match evaluation.gate.outcome {
        GateOutcome::Passed => ("passed", "✓"),
        GateOutcome::Failed => ("failed", "✗"),
        GateOutcome::NotEnoughData => ("undecided", "?"),
    };
    OutcomeShown { class, sign, sentence: evaluation_text::outcome(evaluation) }
}

/// Every rule of the gate.
pub(super) fn rules(evaluation: &Evaluation) -> Vec<RuleShown> {
    let rules = evaluation.gate.rules.iter().map(|rule| RuleShown {
        code: shown::visible(&evaluation_text::rule(rule)),
        actual: shown::number(rule.actual),
        limit: shown::visible(&evaluation_text::limit(rule)),
        passed: rule.passed,
        word: match (rule.passed, rule.limit) {
            (true, None) => "",
            (true, Some(_)) => "met",
            (false, _) => "violated",
        },
    });
    rules.collect()
}

/// Every rule of comparison.
pub(super) fn comparing(evaluation: &Evaluation) -> Vec<ComparingShown> {
    let rules = evaluation.rules.iter().map(|used| ComparingShown {
        rule: shown::visible(&used.rule),
        matched: shown::number(used.matched),
        idle: used.matched == 0,
    });
    rules.collect()
}

/// The verdicts that cases have, the worst first as in every list of the report.
pub(super) fn bar(evaluation: &Evaluation) -> Vec<BarPart> {
    let count = |verdict| evaluation.counts.get(&verdict).copied().unwrap_or(0);
    let total: u64 = Verdict::WORST_FIRST.into_iter().map(count).sum();
    let seen: Vec<_> = Verdict::WORST_FIRST.into_iter().filter(|verdict| count(*verdict) > 0).collect();
    let widths: Vec<u64> = seen.iter().map(|verdict| (count(*verdict) * BAR_WIDTH / total).max(BAR_LEAST)).collect();
    let sum: u64 = widths.iter().sum();
    let mut x = 0;
    let mut parts = Vec::new();
    for (verdict, width) in seen.into_iter().zip(widths) {
        let end = (x + width).min(sum);
        // Rounding and least widths are shared out, so that the parts always fill the bar.
        let (from, to) = (x * BAR_WIDTH / sum, end * BAR_WIDTH / sum);
        parts.push(BarPart {
            verdict: verdicts::show(verdict),
            count: shown::number(count(verdict)),
            x: from,
            width: to - from,
            list: lists::of_verdict(verdict, 1),
        });
        x = end;
    }
    parts
}
