//! The first page: whether it may go out, what moved, and what was compared.

use std::collections::HashMap;

use askama::Template;
use counterproof_artifact::CaseId;
use counterproof_artifact::evaluation::{CaseEvaluation, Cluster, Evaluation, GateOutcome, Verdict};

use super::cause;
use super::changes::ChangesShown;
use super::files::FileLink;
use super::names;
use super::runs::{self, FactShown};
use super::shown;
use super::verdicts::{self, VerdictShown};
use super::writer::{ReportError, ReportWriter};
use crate::{sentences, words};

/// Width of the bar of counts, in its own units.
const BAR_WIDTH: u64 = 1000;

/// A verdict that any case has is seen in the bar, however many cases there are.
const BAR_LEAST: u64 = 6;

/// Causes that are listed: those of most cases.
const CAUSES_SHOWN: usize = 20;

/// Cases that are linked from the cause that they share.
const CASES_OF_A_CAUSE: usize = 12;

/// The page, ready to be shown.
#[derive(Debug, Template)]
#[template(path = "index.html")]
pub(super) struct IndexPage {
    root: &'static str,
    baseline_id: String,
    new_id: String,
    besides: String,
    repeats: String,
    suite: Vec<String>,
    outcome: OutcomeShown,
    rules: Vec<RuleShown>,
    facts: Vec<FactShown>,
    /// `None` where the run documents are not there to tell.
    settings: Option<ChangesShown>,
    evaluator: String,
    comparing: Vec<ComparingShown>,
    runs: Vec<(&'static str, FileLink)>,
    cases: String,
    bar: Vec<BarPart>,
    bar_words: String,
    moved: Vec<Group>,
    quiet: Vec<Group>,
    quiet_words: String,
    causes: Vec<SharedCause>,
}

/// What the gate says.
#[derive(Debug, Clone)]
struct OutcomeShown {
    class: &'static str,
    sign: &'static str,
    sentence: String,
}

/// A rule of the gate.
#[derive(Debug, Clone)]
struct RuleShown {
    code: String,
    actual: String,
    limit: String,
    passed: bool,
    word: &'static str,
}

/// A rule of comparison.
#[derive(Debug, Clone)]
struct ComparingShown {
    rule: String,
    matched: String,
    /// True where it matched nothing.
    idle: bool,
}

/// A verdict's part of the bar.
#[derive(Debug, Clone)]
struct BarPart {
    verdict: VerdictShown,
    count: String,
    x: u64,
    width: u64,
}

/// The cases with one verdict.
#[derive(Debug, Clone)]
struct Group {
    verdict: VerdictShown,
    rows: Vec<RowShown>,
}

/// A case.
#[derive(Debug, Clone)]
struct RowShown {
    /// The case's page, where it has one.
    href: Option<String>,
    case_id: String,
    title: Option<String>,
    risk: &'static str,
    severity: String,
    reason: String,
    more: String,
}

/// A cause that several cases share.
#[derive(Debug, Clone)]
struct SharedCause {
    code: String,
    place: String,
    message: String,
    cases: Vec<CaseOfCause>,
    more: String,
}

/// A case that shares a cause.
#[derive(Debug, Clone)]
struct CaseOfCause {
    /// The case's page, where it has one.
    href: Option<String>,
    case_id: String,
}

impl IndexPage {
    /// The first page of a finished comparison.
    pub(super) fn of(report: &ReportWriter<'_>, evaluation: &Evaluation) -> Result<Self, ReportError> {
        let documents = report.documents();
        let (moved, quiet): (Vec<_>, Vec<_>) = Verdict::WORST_FIRST
            .into_iter()
            .map(|verdict| (verdict, group(report, evaluation, verdict)))
            .filter(|(_, group)| !group.rows.is_empty())
            .partition(|(verdict, _)| !verdicts::is_quiet(*verdict));
        let quiet_words: Vec<_> =
            quiet.iter().map(|(_, group)| format!("{} {}", group.rows.len(), group.verdict.word)).collect();
        let bar = bar(evaluation);
        let bar_words: Vec<_> = bar.iter().map(|part| format!("{} {}", part.count, part.verdict.word)).collect();
        Ok(Self {
            root: "",
            baseline_id: evaluation.baseline.run_id.to_string(),
            new_id: evaluation.new.run_id.to_string(),
            outcome: outcome(evaluation),
            besides: sentences::besides(evaluation),
            repeats: sentences::repeats(evaluation),
            suite: sentences::suite(evaluation),
            rules: rules(evaluation),
            facts: runs::facts(evaluation, documents),
            settings: documents.map(|[baseline, new]| runs::settings_that_differ(baseline, new)),
            evaluator: evaluation.evaluator_version.clone(),
            comparing: comparing(evaluation),
            runs: report.run_links()?,
            cases: words::count(evaluation.cases.len(), "case", "cases"),
            bar,
            bar_words: words::list(&bar_words),
            moved: moved.into_iter().map(|(_, group)| group).collect(),
            quiet: quiet.into_iter().map(|(_, group)| group).collect(),
            quiet_words: words::list(&quiet_words),
            causes: causes(report, evaluation),
        })
    }
}

fn causes(report: &ReportWriter<'_>, evaluation: &Evaluation) -> Vec<SharedCause> {
    let verdicts: HashMap<_, _> = evaluation.cases.iter().map(|case| (&case.case_id, case.verdict)).collect();
    let shared = evaluation.clusters.iter().filter(|cluster| cluster.case_ids.len() > 1).take(CAUSES_SHOWN);
    let show = |cluster: &Cluster| {
        let link = |id: &CaseId| {
            let has_page = verdicts.get(id).is_some_and(|verdict| report.selection.includes(*verdict));
            let href = has_page.then(|| names::encode_path(&report.case_page(id)));
            CaseOfCause { href, case_id: id.to_string() }
        };
        let hidden = cluster.case_ids.len().saturating_sub(CASES_OF_A_CAUSE);
        SharedCause {
            code: cluster.code.clone(),
            place: shown::visible(&cluster.place),
            message: shown::visible(&cluster.message),
            cases: cluster.case_ids.iter().take(CASES_OF_A_CAUSE).map(link).collect(),
            more: if hidden > 0 {
                format!("and {}", words::count(hidden, "more case", "more cases"))
            } else {
                String::new()
            },
        }
    };
    shared.map(show).collect()
}

fn outcome(evaluation: &Evaluation) -> OutcomeShown {
    let (class, sign) = match evaluation.gate.outcome {
        GateOutcome::Passed => ("passed", "✓"),
        GateOutcome::Failed => ("failed", "✗"),
        GateOutcome::NotEnoughData => ("undecided", "?"),
    };
    OutcomeShown { class, sign, sentence: sentences::gate(&evaluation.gate) }
}

fn rules(evaluation: &Evaluation) -> Vec<RuleShown> {
    let rules = evaluation.gate.rules.iter().map(|rule| RuleShown {
        code: shown::visible(&sentences::rule(rule)),
        actual: shown::number(rule.actual),
        limit: shown::visible(&sentences::limit(rule)),
        passed: rule.passed,
        word: match (rule.passed, rule.limit) {
            (true, None) => "",
            (true, Some(_)) => "kept",
            (false, _) => "not kept",
        },
    });
    rules.collect()
}

fn comparing(evaluation: &Evaluation) -> Vec<ComparingShown> {
    let rules = evaluation.rules.iter().map(|used| ComparingShown {
        rule: shown::visible(&used.rule),
        matched: shown::number(used.matched),
        idle: used.matched == 0,
    });
    rules.collect()
}

fn bar(evaluation: &Evaluation) -> Vec<BarPart> {
    let count = |verdict| evaluation.counts.get(&verdict).copied().unwrap_or(0);
    let total: u64 = Verdict::WORST_FIRST.into_iter().map(count).sum();
    // What is fine comes first, as the eye reads a bar from its full end.
    let seen: Vec<_> = Verdict::WORST_FIRST.into_iter().rev().filter(|verdict| count(*verdict) > 0).collect();
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
        });
        x = end;
    }
    parts
}

fn group(report: &ReportWriter<'_>, evaluation: &Evaluation, verdict: Verdict) -> Group {
    let cases = evaluation.worst_first().into_iter().filter(|case| case.verdict == verdict);
    Group { verdict: verdicts::show(verdict), rows: cases.map(|case| row(report, case)).collect() }
}

fn row(report: &ReportWriter<'_>, case: &CaseEvaluation) -> RowShown {
    let more = case.reasons.len().saturating_sub(1);
    let has_page = report.selection.includes(case.verdict);
    RowShown {
        href: has_page.then(|| names::encode_path(&report.case_page(&case.case_id))),
        case_id: case.case_id.to_string(),
        title: case.title.as_deref().map(shown::visible),
        risk: verdicts::risk(case.risk_level).unwrap_or(""),
        severity: case.severity.as_ref().map(|severity| cause::score(severity.score)).unwrap_or_default(),
        reason: case.reasons.first().map(|reason| shown::visible(&reason.message)).unwrap_or_default(),
        more: if more > 0 {
            format!("and {}", words::count(more, "more reason", "more reasons"))
        } else {
            String::new()
        },
    }
}
