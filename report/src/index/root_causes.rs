//! Changes by root cause: the cases grouped by the root cause that they share.

use std::collections::HashMap;

use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, Verdict};

use super::case_row::{self, CaseRow, CaseTable};
use super::usage_columns::UsageColumns;
use crate::layout;
use crate::site::Site;
use crate::view::display;
use crate::view::verdict::{self, VerdictView};
use counterproof_evaluator::text;

/// The number of groups on the index page. The lists by verdict contain the cases of the others.
const GROUPS_SHOWN: usize = 150;

/// The number of cases that a group on the index page lists. A larger group has a list of its own.
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

/// A group on the index page.
#[derive(Debug, Clone)]
pub(crate) struct GroupView {
    pub(crate) verdict: VerdictView,
    pub(crate) severity: &'static str,
    /// The message of the root cause.
    pub(crate) message: String,
    /// The stable code of the root cause.
    pub(crate) code: String,
    /// The location that the cases share.
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

/// The groups of a section.
#[derive(Debug, Clone, Default)]
pub(crate) struct GroupsView {
    /// The groups, worst first.
    pub(crate) rows: Vec<GroupView>,
    /// What is not shown; empty where everything is.
    pub(crate) more: String,
}

/// Groups all cases except the unchanged ones, worst group first.
pub(crate) fn groups(evaluation: &Evaluation) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut indexes: HashMap<GroupKey<'_>, usize> = HashMap::new();
    for case in evaluation.worst_first().into_iter().filter(|case| case.verdict != Verdict::Unchanged) {
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
    let code = case.reasons.first().map_or("", |reason| reason.code.as_str());
    GroupKey { is_quiet, cause: code, verdict: Some(case.verdict) }
}

pub(crate) fn view(site: &Site<'_>, columns: &UsageColumns, groups: &[Group<'_>], section: Section) -> GroupsView {
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

    /// Returns whether the group has a list of its own, because the index does not show all of its cases.
    pub(crate) fn has_list(&self) -> bool {
        self.cases.len() > CASES_SHOWN
    }

    /// The message of the root cause. Where the values differ between the cases, the message of the worst case.
    pub(crate) fn message(&self) -> String {
        let message = |case: &&CaseEvaluation| case.cause.as_ref().map(|cause| cause.message.clone());
        match self.cases.as_slice() {
            [] => String::new(),
            [only] => case_row::reason(only),
            [worst, others @ ..] => match &worst.cause {
                Some(cause) if others.iter().any(|other| message(other) != message(worst)) => {
                    format!("for example: {}", display::visible(&cause.message))
                }
                Some(cause) => display::visible(&cause.message),
                None => case_row::reason(worst),
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
        let of_verdict = |(verdict, count): &(Verdict, usize)| format!("{count} {}", verdict::show(*verdict).word);
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
    let listed = if count == 1 { 0 } else { CASES_SHOWN };
    GroupView {
        verdict: verdict::show(worst.verdict),
        severity: case_row::severity(worst),
        message: group.message(),
        code,
        location,
        only: (count == 1).then(|| CaseRow::new(site, worst)),
        count: group.count(),
        cases: CaseTable::new(site, columns, group.cases.iter().take(listed).copied()),
        more: if group.has_list() { format!("All {} cases", display::number(count as u64)) } else { String::new() },
        list: layout::root_cause_list(index, 1),
    }
}
