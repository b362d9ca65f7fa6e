//! What moved: the cases grouped by the cause that they share, so that one change seen in forty cases is one row.

use std::collections::HashMap;

use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, Verdict};

use super::case_rows::{self, CaseRow};
use super::lists;
use super::shown;
use super::verdicts::{self, VerdictShown};
use super::writer::ReportWriter;
use crate::values::text;

/// Rows of the first page; what comes after is on the pages of its verdict.
const GROUPS_SHOWN: usize = 150;

/// Cases of a row that the first page lists; a row of more has pages of its own.
pub(super) const CASES_SHOWN: usize = 12;

/// Cases that differ for the same reason: never empty, and the worst first.
#[derive(Debug)]
pub(super) struct Group<'a> {
    /// The cases.
    pub(super) cases: Vec<&'a CaseEvaluation>,
}

/// What two cases of one group have in common.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Shared<'a> {
    /// Noise stands apart from what moved.
    quiet: bool,
    /// The id of the cause, or the code of the reason where there is no cause.
    cause: &'a str,
    /// Without a cause, cases of several verdicts have nothing in common.
    verdict: Option<Verdict>,
}

/// A row, ready to be shown.
#[derive(Debug, Clone)]
pub(super) struct GroupShown {
    /// The worst verdict of its cases.
    pub(super) verdict: VerdictShown,
    /// The highest severity.
    pub(super) severity: String,
    /// What happened, as one person would tell another.
    pub(super) sentence: String,
    /// The stable name of the cause, and its place.
    pub(super) code: String,
    /// What differs, by the names that cases share.
    pub(super) place: String,
    /// The only case, where there is one; it needs no unfolding.
    pub(super) only: Option<CaseRow>,
    /// How many cases there are, in words, and of which verdicts.
    pub(super) count: String,
    /// The first cases.
    pub(super) cases: Vec<CaseRow>,
    /// Where all of them are, in words; empty where all are here.
    pub(super) more: String,
    /// The page with all of them.
    pub(super) all: String,
}

/// The rows of a kind.
#[derive(Debug, Clone, Default)]
pub(super) struct GroupsShown {
    /// The rows, the worst first.
    pub(super) rows: Vec<GroupShown>,
    /// What is not shown, in words; empty where all is.
    pub(super) more: String,
}

/// Every case but the unchanged ones, grouped; the worst group first.
pub(super) fn groups(evaluation: &Evaluation) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut places: HashMap<Shared<'_>, usize> = HashMap::new();
    for case in evaluation.worst_first().into_iter().filter(|case| case.verdict != Verdict::Unchanged) {
        let quiet = verdicts::is_quiet(case.verdict);
        let code = case.reasons.first().map_or("", |reason| reason.code.as_str());
        let shared = case.cause.as_ref().map_or(Shared { quiet, cause: code, verdict: Some(case.verdict) }, |cause| {
            Shared { quiet, cause: &cause.cluster, verdict: None }
        });
        let place = *places.entry(shared).or_insert_with(|| {
            groups.push(Group { cases: Vec::new() });
            groups.len() - 1
        });
        groups[place].cases.push(case);
    }
    groups
}

/// The rows of what moved, or of noise.
pub(super) fn show(report: &ReportWriter<'_>, groups: &[Group<'_>], quiet: bool) -> GroupsShown {
    let chosen = groups.iter().enumerate().filter(|(_, group)| group.is_quiet() == quiet);
    let chosen: Vec<_> = chosen.filter_map(|(index, group)| Some((index, group, *group.cases.first()?))).collect();
    let hidden = chosen.len().saturating_sub(GROUPS_SHOWN);
    let rows = chosen.into_iter().take(GROUPS_SHOWN);
    GroupsShown {
        rows: rows.map(|(index, group, worst)| row(report, index, group, worst)).collect(),
        more: if hidden > 0 {
            format!("{} more rows like these; the lists of each verdict have all cases", shown::number(hidden as u64))
        } else {
            String::new()
        },
    }
}

impl Group<'_> {
    fn is_quiet(&self) -> bool {
        self.cases.first().is_some_and(|case| verdicts::is_quiet(case.verdict))
    }

    /// True where the first page does not list all of its cases.
    pub(super) fn has_pages(&self) -> bool {
        self.cases.len() > CASES_SHOWN
    }

    /// What happened, as one person would tell another; where the cases share the cause and not its values, those of the worst.
    pub(super) fn sentence(&self) -> String {
        let message = |case: &&CaseEvaluation| case.cause.as_ref().map(|cause| cause.message.clone());
        match self.cases.as_slice() {
            [] => String::new(),
            [only] => case_rows::reason(only),
            [worst, others @ ..] => match &worst.cause {
                Some(cause) if others.iter().any(|other| message(other) != message(worst)) => {
                    format!("such as: {}", shown::visible(&cause.message))
                }
                Some(cause) => shown::visible(&cause.message),
                None => case_rows::reason(worst),
            },
        }
    }

    /// How many cases there are; where their verdicts differ, how many of each.
    pub(super) fn count(&self) -> String {
        let all = text::count(self.cases.len(), "case", "cases");
        let runs: Vec<_> = self.cases.chunk_by(|a, b| a.verdict == b.verdict).collect();
        if runs.len() < 2 {
            return all;
        }
        let of = |run: &&[&CaseEvaluation]| {
            run.first().map(|case| format!("{} {}", run.len(), verdicts::show(case.verdict).word)).unwrap_or_default()
        };
        format!("{all}: {}", text::list(&runs.iter().map(of).collect::<Vec<_>>()))
    }
}

fn row(report: &ReportWriter<'_>, index: usize, group: &Group<'_>, worst: &CaseEvaluation) -> GroupShown {
    let show = |case: &&CaseEvaluation| CaseRow::of(report, case);
    let count = group.cases.len();
    let (code, place) = match &worst.cause {
        Some(cause) => (cause.code.clone(), shown::visible(&cause.place)),
        None => (worst.reasons.first().map(|reason| reason.code.clone()).unwrap_or_default(), String::new()),
    };
    GroupShown {
        verdict: verdicts::show(worst.verdict),
        severity: case_rows::severity(worst),
        sentence: group.sentence(),
        code,
        place,
        only: (count == 1).then(|| CaseRow::of(report, worst)),
        count: group.count(),
        cases: if count == 1 { Vec::new() } else { group.cases.iter().take(CASES_SHOWN).map(show).collect() },
        more: if group.has_pages() { format!("All {} cases", shown::number(count as u64)) } else { String::new() },
        all: lists::of_group(index, 1),
    }
}
