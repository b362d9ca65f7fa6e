//! The gate with every rule, the comparison rules, and the number of cases by verdict.

use std::collections::HashMap;

use counterproof_artifact::evaluation::{Evaluation, GateOutcome, Verdict};

use crate::layout;
use crate::site::Site;
use crate::view::display;
use crate::view::verdict::{self, VerdictView};
use counterproof_evaluator::evaluation_text;
use counterproof_evaluator::{ReviewLine, gate_headline, gate_qualifications, review_lines};

/// The maximum number of review items.
const REVIEW_LISTED: usize = 10;

/// The width of the bar in its own units.
const BAR_WIDTH: u64 = 1000;

/// The minimum width of a part, so that a single case is visible.
const BAR_LEAST: u64 = 6;

#[derive(Debug, Clone)]
pub(crate) struct GateHeadlineView {
    /// The CSS class.
    pub(crate) class: &'static str,
    /// The sign before the sentence.
    pub(crate) sign: &'static str,
    /// The outcome with the number of rules.
    pub(crate) sentence: String,
    /// What limits the meaning of the outcome, one sentence each.
    pub(crate) qualifications: Vec<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct GateRuleView {
    /// What the rule counts.
    pub(crate) name: String,
    /// The count.
    pub(crate) actual: String,
    pub(crate) limit: String,
    /// Whether the rule is met.
    pub(crate) passed: bool,
    /// `met` or `violated`; empty for a rule without a limit.
    pub(crate) result: &'static str,
}

#[derive(Debug, Clone)]
pub(crate) struct ComparisonRuleView {
    pub(crate) rule: String,
    pub(crate) matches: String,
    /// Whether the rule has no match.
    pub(crate) is_unused: bool,
}

/// The part of the bar for a verdict.
#[derive(Debug, Clone)]
pub(crate) struct BarPart {
    pub(crate) verdict: VerdictView,
    /// The number of cases.
    pub(crate) count: String,
    /// The start.
    pub(crate) x: u64,
    pub(crate) width: u64,
    /// The first page of the list of these cases.
    pub(crate) list: String,
}

pub(crate) fn headline(evaluation: &Evaluation) -> GateHeadlineView {
    let (class, sign) = match evaluation.gate.outcome {
        GateOutcome::Passed => ("passed", "✓"),
        GateOutcome::Failed => ("failed", "✗"),
        GateOutcome::NotEnoughData | GateOutcome::NotJudged => ("undecided", "?"),
    };
    GateHeadlineView {
        class,
        sign,
        sentence: gate_headline(&evaluation.gate),
        qualifications: gate_qualifications(evaluation),
    }
}

/// A review item.
#[derive(Debug, Clone)]
pub(crate) struct ReviewView {
    /// The case; empty for an item about the whole comparison.
    pub(crate) case_id: String,
    /// The link to the case page, where it has one.
    pub(crate) href: Option<String>,
    pub(crate) kind: String,
    pub(crate) message: String,
}

/// The review items, most urgent first.
pub(crate) fn review(site: &Site<'_>, evaluation: &Evaluation) -> Vec<ReviewView> {
    let cases: HashMap<_, _> = evaluation.cases.iter().map(|case| (&case.case_id, case)).collect();
    let view = |line: ReviewLine| ReviewView {
        href: line.case_id.as_ref().and_then(|id| cases.get(id)).and_then(|case| site.case_href(case)),
        case_id: line.case_id.map(|id| id.to_string()).unwrap_or_default(),
        kind: display::visible(&line.kind),
        message: display::visible(&line.message),
    };
    review_lines(evaluation, REVIEW_LISTED).into_iter().map(view).collect()
}

pub(crate) fn rules(evaluation: &Evaluation) -> Vec<GateRuleView> {
    let rules = evaluation.gate.rules.iter().map(|rule| GateRuleView {
        name: display::visible(&evaluation_text::rule(rule)),
        actual: display::number(rule.actual),
        limit: display::visible(&evaluation_text::limit(rule)),
        passed: rule.passed,
        result: match (rule.passed, rule.is_limited()) {
            (true, false) => "",
            (true, true) => "met",
            (false, _) => "violated",
        },
    });
    rules.collect()
}

pub(crate) fn comparison_rules(evaluation: &Evaluation) -> Vec<ComparisonRuleView> {
    let rules = evaluation.rules.iter().map(|used| ComparisonRuleView {
        rule: display::visible(&used.rule),
        matches: display::number(used.matched),
        is_unused: used.matched == 0,
    });
    rules.collect()
}

/// The bar of verdicts, worst first. Verdicts without cases have no part.
pub(crate) fn bar(evaluation: &Evaluation) -> Vec<BarPart> {
    let count = |verdict| evaluation.counts.get(&verdict).copied().unwrap_or(0);
    let total: u64 = Verdict::WORST_FIRST.into_iter().map(count).sum();
    let seen: Vec<_> = Verdict::WORST_FIRST.into_iter().filter(|verdict| count(*verdict) > 0).collect();
    let widths: Vec<u64> = seen.iter().map(|verdict| (count(*verdict) * BAR_WIDTH / total).max(BAR_LEAST)).collect();
    let sum: u64 = widths.iter().sum();
    let mut x = 0;
    let mut parts = Vec::new();
    for (verdict, width) in seen.into_iter().zip(widths) {
        let end = (x + width).min(sum);
        // Scaled to the sum, because of rounding and minimum widths, so that the parts always fill the bar.
        let (from, to) = (x * BAR_WIDTH / sum, end * BAR_WIDTH / sum);
        parts.push(BarPart {
            verdict: verdict::show(verdict),
            count: display::number(count(verdict)),
            x: from,
            width: to - from,
            list: layout::verdict_list(verdict, 1),
        });
        x = end;
    }
    parts
}
