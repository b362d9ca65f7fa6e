//! Cases that differ in the same way. A group is named by its pattern: the kind of the root cause and where it is, without the
//! values of a single case.

use std::collections::HashMap;

use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, Verdict};
use counterproof_evaluator::{is_alone, text, worst_first};

use super::case_lists::group_slug;
use super::rows::{CaseRow, Rows};
use crate::folder;
use crate::view::display;
use crate::view::word::Word;

/// The number of groups, and of cases of a group, on the index page. Lists have the rest.
const GROUPS_SHOWN: usize = 60;
const CASES_SHOWN: usize = 12;

/// Cases with the same root cause, worst first. A group is never empty.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    pub(crate) cases: Vec<&'a CaseEvaluation>,
    is_alone: bool,
}

/// What the cases of a group have in common.
#[derive(Debug, PartialEq, Eq, Hash)]
struct GroupKey<'a> {
    /// Noise and equal cases come after all others, whatever their cause.
    quiet: Option<Word>,
    /// The cluster of the root cause, or the code of the first reason if the root cause is unknown.
    cause: &'a str,
    /// The verdict, if the root cause is unknown.
    verdict: Option<Verdict>,
}

/// Groups all cases, the group of the worst case first.
pub(crate) fn groups(evaluation: &Evaluation) -> Vec<Group<'_>> {
    let is_alone = is_alone(evaluation);
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut indexes: HashMap<GroupKey<'_>, usize> = HashMap::new();
    for ranked in worst_first(evaluation) {
        let index = *indexes.entry(key(ranked.case, is_alone)).or_insert_with(|| {
            groups.push(Group { cases: Vec::new(), is_alone });
            groups.len() - 1
        });
        groups[index].cases.push(ranked.case);
    }
    // Stable: the groups of changes stay in the order of their worst case.
    groups.sort_by_key(|group| quiet(group.cases[0], is_alone));
    groups
}

fn quiet(case: &CaseEvaluation, is_alone: bool) -> Option<Word> {
    Some(Word::of_case(case, is_alone)).filter(|word| matches!(word, Word::Noise | Word::Same | Word::Met))
}

fn key(case: &CaseEvaluation, is_alone: bool) -> GroupKey<'_> {
    let quiet = quiet(case, is_alone);
    if quiet.is_some() {
        return GroupKey { quiet, cause: "", verdict: None };
    }
    if let Some(found) = &case.cause {
        return GroupKey { quiet, cause: &found.cluster, verdict: None };
    }
    // An unknown root cause is not shared, but a common first reason still groups similar cases.
    let code = case.reasons.first().map_or("", |reason| reason.code.as_str());
    GroupKey { quiet, cause: code, verdict: Some(case.verdict) }
}

impl Group<'_> {
    /// Whether the group has a separate list, because the index does not show all of its cases.
    pub(crate) fn has_list(&self) -> bool {
        self.cases.len() > CASES_SHOWN
    }

    /// Whether the group is a filter of the first page.
    pub(crate) fn is_filter(&self) -> bool {
        self.cases.len() > 1
    }

    /// The pattern: what kind of difference, and where.
    pub(crate) fn title(&self) -> String {
        let worst = self.cases[0];
        if let Some(word) = quiet(worst, self.is_alone) {
            return match word {
                Word::Noise => "Within the noise of the baseline".to_owned(),
                Word::Met => "Answered, and all expectations met".to_owned(),
                _ => "No difference".to_owned(),
            };
        }
        let Some(cause) = &worst.cause else {
            let code = worst.reasons.first().map_or_else(|| worst.verdict.as_str(), |reason| reason.code.as_str());
            return display::visible(&text::first_upper(&code.replace(['-', '_'], " ")));
        };
        let place = display::visible(&cause.place);
        let pattern = match cause.code.as_str() {
            "input-changed" => "Other input".to_owned(),
            "output-only" => "Only the answer differs".to_owned(),
            "runner-failure" => format!("No answer: {place}"),
            "tool-choice" => format!("Other steps: {place}"),
            "order" => format!("Other order: {place}"),
            "arguments" => format!("Other argument: {place}"),
            "argument-form" => "Arguments in another form".to_owned(),
            "ungrounded-argument" => format!("Argument from nowhere: {place}"),
            "evidence-lost" => format!("Lost evidence: {place}"),
            "retrieval-changed" => format!("Other documents: {place}"),
            "tool-result-changed" => format!("Other result: {place}"),
            "tool-error" => format!("Failed call: {place}"),
            "model-unexplained" => format!("Other action for the same facts: {place}"),
            code => format!("{}: {place}", text::first_upper(&code.replace('-', " "))),
        };
        pattern.trim_end_matches([':', ' ']).to_owned()
    }

    /// The number of cases, and of each word if there are several.
    pub(crate) fn count(&self) -> String {
        let all = text::count(self.cases.len(), "case", "cases");
        let of_word = |word: Word| {
            let cases: Vec<_> =
                self.cases.iter().copied().filter(|case| Word::of_case(case, self.is_alone) == word).collect();
            let unconfirmed = super::case_lists::unconfirmed(&cases);
            (!cases.is_empty()).then(|| format!("{} {}{unconfirmed}", cases.len(), word.as_str()))
        };
        let counts: Vec<_> = Word::ALL.into_iter().filter_map(of_word).collect();
        if counts.len() < 2 { all } else { format!("{all}: {}", text::list(&counts)) }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct GroupView {
    pub(crate) title: String,
    pub(crate) count: String,
    pub(crate) rows: Vec<CaseRow>,
    /// The text of the link to all cases; empty where all are listed.
    pub(crate) more: String,
    /// The path of the list of all cases, and its name in the address.
    pub(crate) list: String,
    pub(crate) slug: String,
}

/// The groups of the index page, and a note on those that are only in lists; empty where all are shown.
pub(crate) fn views(rows: &Rows<'_>, groups: &[Group<'_>]) -> (Vec<GroupView>, String) {
    let view = |(index, group): (usize, &Group<'_>)| GroupView {
        title: group.title(),
        count: group.count(),
        rows: group.cases.iter().take(CASES_SHOWN).map(|case| rows.row(case)).collect(),
        more: if group.has_list() {
            format!("all {} cases", display::number(group.cases.len() as u64))
        } else {
            String::new()
        },
        list: folder::list(&group_slug(index), 1),
        slug: group_slug(index),
    };
    let shown = groups.iter().enumerate().take(GROUPS_SHOWN).map(view).collect();
    let hidden = groups.len().saturating_sub(GROUPS_SHOWN);
    let more = if hidden > 0 {
        format!("{}; the lists have all cases", text::count(hidden, "more pattern", "more patterns"))
    } else {
        String::new()
    };
    (shown, more)
}
