//! The gate with every rule, the comparison rules, the number of cases by verdict, and the changes by root cause.

use std::collections::HashMap;

use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, GateOutcome, Verdict};
use counterproof_evaluator::{
    RankedCase, ReviewLine, Standing, evaluation_text, gate_headline, gate_qualifications, is_unconfirmed,
    review_lines, text, worst_first,
};

use super::lists::{self, CaseRow, CaseTable};
use super::page::UsageColumns;
use crate::folder;
use crate::site::Site;
use crate::view::display;
use crate::view::verdict::{self, VerdictView};

const REVIEW_LISTED: usize = 10;

const BAR_WIDTH: u64 = 1000;

/// The minimum width of a part, so that a single case is visible.
const BAR_LEAST: u64 = 6;

#[derive(Debug, Clone)]
pub(crate) struct GateHeadlineView {
    pub(crate) class: &'static str,
    pub(crate) sign: &'static str,
    /// What stands over everything, one sentence each.
    pub(crate) notices: Vec<String>,
    /// The outcome with its reason.
    pub(crate) sentence: String,
    /// What limits the meaning of the outcome, one sentence each.
    pub(crate) qualifications: Vec<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct GateRuleView {
    pub(crate) name: String,
    pub(crate) actual: String,
    pub(crate) limit: String,
    pub(crate) passed: bool,
    /// `met` or `violated`; empty for a rule without a limit.
    pub(crate) result: &'static str,
}

#[derive(Debug, Clone)]
pub(crate) struct ComparisonRuleView {
    pub(crate) rule: String,
    pub(crate) matches: String,
    pub(crate) is_unused: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct BarPart {
    pub(crate) verdict: VerdictView,
    pub(crate) count: String,
    /// How many of the cases are unconfirmed; empty if none is.
    pub(crate) unconfirmed: String,
    pub(crate) x: u64,
    pub(crate) width: u64,
    /// The first page of the list of these cases.
    pub(crate) list: String,
}

pub(crate) fn headline(evaluation: &Evaluation) -> GateHeadlineView {
    let (class, sign) = match evaluation.gate.outcome {
        GateOutcome::Passed if is_unconfirmed(evaluation) => ("undecided", "?"),
        GateOutcome::Passed => ("passed", "✓"),
        GateOutcome::Failed => ("failed", "✗"),
        GateOutcome::NotEnoughData | GateOutcome::NotJudged => ("undecided", "?"),
    };
    GateHeadlineView {
        class,
        sign,
        notices: evaluation.notices.iter().map(|notice| display::visible(&notice.message)).collect(),
        sentence: display::visible(&gate_headline(evaluation)),
        qualifications: gate_qualifications(evaluation),
    }
}

/// Maximum number of cases in each list next to the verdict. The page lists all of them further below.
const CASES_LISTED: usize = 20;

/// The cases of a standing, worst first, each with what happened on how many runs.
pub(crate) fn cases(site: &Site<'_>, evaluation: &Evaluation, standing: Standing) -> Vec<ReviewView> {
    let ranked = worst_first(evaluation);
    let cases: Vec<_> = ranked.iter().filter(|ranked| ranked.standing == standing).collect();
    let view = |ranked: &&RankedCase<'_>| ReviewView {
        href: site.case_href(ranked.case),
        case_id: ranked.case.case_id.to_string(),
        kind: ranked.verdict(),
        message: display::visible(&evaluation_text::case_line(evaluation, ranked)),
    };
    let mut views: Vec<_> = cases.iter().take(CASES_LISTED).map(view).collect();
    if cases.len() > CASES_LISTED {
        let message = format!("and {} more", display::number((cases.len() - CASES_LISTED) as u64));
        views.push(ReviewView { href: None, case_id: String::new(), kind: String::new(), message });
    }
    views
}

#[derive(Debug, Clone)]
pub(crate) struct ReviewView {
    /// The case; empty for an item about the whole comparison.
    pub(crate) case_id: String,
    /// The link to the case page; `None` without a page.
    pub(crate) href: Option<String>,
    pub(crate) kind: String,
    pub(crate) message: String,
}

/// The review items, most urgent first.
pub(crate) fn review(site: &Site<'_>, evaluation: &Evaluation) -> Vec<ReviewView> {
    // One pass instead of a search through all cases for each item.
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
        limit: display::visible(&evaluation_text::tested(rule)),
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
            unconfirmed: evaluation_text::unconfirmed(&evaluation.cases, verdict),
            x: from,
            width: to - from,
            list: folder::verdict_list(verdict, 1),
        });
        x = end;
    }
    parts
}

/// The number of groups on the index page. The lists by verdict contain the cases of the others.
const GROUPS_SHOWN: usize = 150;

/// The number of cases that a group on the index page lists. A larger group has a separate list.
pub(crate) const CASES_SHOWN: usize = 12;

/// Cases with the same root cause, worst first. A group is never empty.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    pub(crate) cases: Vec<&'a CaseEvaluation>,
}

/// What the cases of a group have in common.
#[derive(Debug, PartialEq, Eq, Hash)]
struct GroupKey<'a> {
    /// Noise is separate from changes.
    is_quiet: bool,
    /// The id of the root cause, or the code of the first reason if the root cause is unknown.
    cause: &'a str,
    /// The verdict, if the root cause is unknown.
    verdict: Option<Verdict>,
}

/// The part of the groups that a section shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    /// Groups whose worst case changed.
    Changes,
    /// Groups of noisy cases.
    Noise,
}

#[derive(Debug, Clone)]
pub(crate) struct GroupView {
    pub(crate) verdict: VerdictView,
    pub(crate) severity: &'static str,
    pub(crate) message: String,
    pub(crate) code: String,
    pub(crate) location: String,
    /// The only case of the group, which needs no unfolding.
    pub(crate) only: Option<CaseRow>,
    /// The number of cases, and of each verdict if there are several.
    pub(crate) count: String,
    pub(crate) cases: CaseTable,
    /// The text of the link to all cases; empty where all are listed.
    pub(crate) more: String,
    /// The path of the list of all cases.
    pub(crate) list: String,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct GroupsView {
    pub(crate) rows: Vec<GroupView>,
    /// What is not shown; empty where everything is.
    pub(crate) more: String,
}

/// Groups all cases except the unchanged ones, worst group first.
pub(crate) fn groups(evaluation: &Evaluation) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    // The first case of a group is its worst one, because the cases are sorted.
    let mut indexes: HashMap<GroupKey<'_>, usize> = HashMap::new();
    for case in
        worst_first(evaluation).iter().map(|ranked| ranked.case).filter(|case| case.verdict != Verdict::Unchanged)
    {
        let index = *indexes.entry(key(case)).or_insert_with(|| {
            groups.push(Group { cases: Vec::new() });
            groups.len() - 1
        });
        groups[index].cases.push(case);
    }
    groups
}

fn key(case: &CaseEvaluation) -> GroupKey<'_> {
    let is_quiet = verdict::is_quiet(case.verdict);
    if let Some(found) = &case.cause {
        return GroupKey { is_quiet, cause: &found.cluster, verdict: None };
    }
    // An unknown root cause is not shared, but a common first reason still groups similar cases.
    let code = case.reasons.first().map_or("", |reason| reason.code.as_str());
    GroupKey { is_quiet, cause: code, verdict: Some(case.verdict) }
}

pub(crate) fn root_causes(
    site: &Site<'_>,
    columns: &UsageColumns,
    groups: &[Group<'_>],
    section: Section,
) -> GroupsView {
    let chosen = groups.iter().enumerate().filter(|(_, group)| group.section() == section);
    let chosen: Vec<_> = chosen.filter_map(|(index, group)| Some((index, group, *group.cases.first()?))).collect();
    let hidden = chosen.len().saturating_sub(GROUPS_SHOWN);
    let shown = chosen.into_iter().take(GROUPS_SHOWN);
    GroupsView {
        rows: shown.map(|(index, group, worst)| group_view(site, columns, index, group, worst)).collect(),
        more: match hidden {
            0 => String::new(),
            hidden => {
                format!("{} more root causes; the lists by verdict have all cases", display::number(hidden as u64))
            }
        },
    }
}

impl Group<'_> {
    fn section(&self) -> Section {
        let is_quiet = self.cases.first().is_some_and(|case| verdict::is_quiet(case.verdict));
        if is_quiet { Section::Noise } else { Section::Changes }
    }

    /// Returns whether the group has a separate list, because the index does not show all of its cases.
    pub(crate) fn has_list(&self) -> bool {
        self.cases.len() > CASES_SHOWN
    }

    /// The message of the root cause. Where the values differ between the cases, the message of the worst case.
    pub(crate) fn message(&self) -> String {
        let message = |case: &&CaseEvaluation| case.cause.as_ref().map(|cause| cause.message.clone());
        match self.cases.as_slice() {
            [] => String::new(),
            [only] => lists::first_reason(only),
            [worst, others @ ..] => match &worst.cause {
                Some(cause) if others.iter().any(|other| message(other) != message(worst)) => {
                    format!("for example: {}", display::visible(&cause.message))
                }
                Some(cause) => display::visible(&cause.message),
                None => lists::first_reason(worst),
            },
        }
    }

    /// The number of cases, and of each verdict if there are several.
    pub(crate) fn count(&self) -> String {
        let all = text::count(self.cases.len(), "case", "cases");
        // The cases are in the order of severity, which mixes verdicts.
        let count = |verdict| self.cases.iter().filter(|case| case.verdict == verdict).count();
        let counts = Verdict::WORST_FIRST.into_iter().map(|verdict| (verdict, count(verdict)));
        let counts: Vec<_> = counts.filter(|(_, count)| *count > 0).collect();
        if counts.len() < 2 {
            return all;
        }
        let of_verdict = |(verdict, count): &(Verdict, usize)| {
            let unconfirmed = evaluation_text::unconfirmed(self.cases.iter().copied(), *verdict);
            format!("{count} {}{unconfirmed}", verdict::show(*verdict).word)
        };
        format!("{all}: {}", text::list(&counts.iter().map(of_verdict).collect::<Vec<_>>()))
    }
}

fn group_view(
    site: &Site<'_>,
    columns: &UsageColumns,
    index: usize,
    group: &Group<'_>,
    worst: &CaseEvaluation,
) -> GroupView {
    let count = group.cases.len();
    let (code, location) = match &worst.cause {
        Some(cause) => (cause.code.clone(), display::visible(&cause.place)),
        None => (worst.reasons.first().map(|reason| reason.code.clone()).unwrap_or_default(), String::new()),
    };
    // A single case is shown as the group itself.
    let listed = if count == 1 { 0 } else { CASES_SHOWN };
    GroupView {
        verdict: verdict::of_case(worst),
        severity: lists::severity(worst),
        message: group.message(),
        code,
        location,
        only: (count == 1).then(|| CaseRow::new(site, worst)),
        count: group.count(),
        cases: CaseTable::new(site, columns, group.cases.iter().take(listed).copied()),
        more: if group.has_list() { format!("All {} cases", display::number(count as u64)) } else { String::new() },
        list: folder::root_cause_list(index, 1),
    }
}
