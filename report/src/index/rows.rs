//! A case as a row: its result, the request, the effects, in how many runs it is seen, and how long both sides took.

use std::collections::HashMap;

use counterproof_artifact::CaseId;
use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, MeasureCode, SideUsage, UsageCode};
use counterproof_evaluator::{ReasonCode, ReviewLine, is_alone, messages, review_lines};

use crate::site::Site;
use crate::view::display;
use crate::view::word::{Label, Word, failures, seen_in};

/// Maximum number of effects of a row.
const EFFECTS_SHOWN: usize = 3;

/// Maximum number of squares of a side.
const SQUARES: u64 = 12;

#[derive(Debug, Clone)]
pub(crate) struct CaseRow {
    /// The link to the case page, relative to the report folder; `None` for a case without a page.
    pub(crate) href: Option<String>,
    pub(crate) case_id: String,
    /// What was asked, or else the title; may be empty.
    pub(crate) asked: String,
    pub(crate) label: Label,
    /// The writes that differ, each on a line.
    pub(crate) effects: Vec<String>,
    /// What differs besides the writes; may be empty.
    pub(crate) note: String,
    pub(crate) seen: Seen,
    /// The duration of both sides; `–` if it is unknown.
    pub(crate) duration: String,
}

/// In how many runs of each side a case fails.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// `3 of 4, baseline 0 of 4`; `–` where nothing is counted.
    pub(crate) text: String,
    /// A square for each run of new, then of the baseline: whether it fails. Empty for a single run.
    pub(crate) new: Vec<bool>,
    pub(crate) baseline: Vec<bool>,
}

/// What the rows of a comparison share.
#[derive(Debug)]
pub(crate) struct Rows<'a> {
    pub(super) site: &'a Site<'a>,
    is_alone: bool,
    /// What a person should look at, by case.
    review: HashMap<CaseId, ReviewLine>,
}

impl<'a> Rows<'a> {
    pub(crate) fn new(site: &'a Site<'a>, evaluation: &Evaluation) -> Self {
        let lines = review_lines(evaluation, usize::MAX).into_iter();
        let review = lines.filter_map(|line| Some((line.case_id.clone()?, line))).collect();
        Self { site, is_alone: is_alone(evaluation), review }
    }

    pub(crate) fn has_review(&self, case: &CaseEvaluation) -> bool {
        self.review.contains_key(&case.case_id)
    }

    pub(crate) fn row(&self, case: &CaseEvaluation) -> CaseRow {
        let label = Label::of_case(case, self.is_alone);
        let effects = &case.story.effects;
        let mut shown: Vec<_> =
            effects.iter().take(EFFECTS_SHOWN).map(|effect| display::visible(&messages::effect(effect))).collect();
        if effects.len() > EFFECTS_SHOWN {
            shown.push(format!("and {} more", effects.len() - EFFECTS_SHOWN));
        }
        let asked = case.story.asked.as_deref().or(case.title.as_deref()).unwrap_or_default();
        CaseRow {
            href: self.site.case_href(case),
            case_id: case.case_id.to_string(),
            asked: display::visible(asked),
            label,
            note: self.note(case, label.word),
            effects: shown,
            seen: Seen::of_case(case, label.word),
            duration: duration(case),
        }
    }

    /// What a row says besides the writes: why the case is worse, what a person should look at, or what differs where no write does.
    fn note(&self, case: &CaseEvaluation, word: Word) -> String {
        let first = case.reasons.first();
        let is_of = |code: ReasonCode| first.is_some_and(|first| code.is_code_of(first));
        let is_expectation = is_of(ReasonCode::ExpectationFailed) || is_of(ReasonCode::MustUnmet);
        let decides = matches!(word, Word::Worse | Word::Failed | Word::NotCompared | Word::Unmet);
        if let Some(line) = self.review.get(&case.case_id).filter(|_| !(decides && is_expectation)) {
            return display::visible(&format!("{}: {}", line.kind, line.message));
        }
        let Some(first) = first else {
            return if word == Word::Same { "no difference".to_owned() } else { String::new() };
        };
        if is_of(ReasonCode::OutputChanged) {
            let words = first.message.strip_prefix("output: ").unwrap_or(&first.message);
            return format!("answer only: {}", display::visible(words));
        }
        // The effects say what an action did; a missed expectation is more than that.
        let is_more = case.story.effects.is_empty() || (decides && is_expectation);
        if is_more { display::visible(&first.message) } else { String::new() }
    }
}

impl Seen {
    fn of_case(case: &CaseEvaluation, word: Word) -> Self {
        let unknown = || Self { text: "–".to_owned(), ..Self::default() };
        let Some(solved) = case.measure(MeasureCode::Solved) else {
            return match word {
                Word::Worse | Word::Failed | Word::Unmet | Word::Different if case.repeats.is_none() => {
                    Self { text: "1 of 1 run".to_owned(), ..Self::default() }
                }
                _ => unknown(),
            };
        };
        let (baseline, new) = failures(solved);
        let squares = |(failed, runs): (u64, u64)| {
            let shown = runs.min(SQUARES);
            // A share of many runs still shows each failure that it can.
            let filled = if runs > shown { (failed * shown).div_ceil(runs) } else { failed };
            (0..shown).map(|index| index < filled).collect::<Vec<_>>()
        };
        Self {
            text: seen_in(solved).unwrap_or_else(|| "fails in no run".to_owned()),
            new: squares(new),
            baseline: squares(baseline),
        }
    }
}

fn duration(case: &CaseEvaluation) -> String {
    let side = |side: &Option<SideUsage>| {
        side.as_ref()
            .and_then(|side| side.get(UsageCode::Duration))
            // A number and its unit stay on one line.
            .map(|value| messages::usage::amount(UsageCode::Duration, value, None).replace(' ', "\u{a0}"))
    };
    let Some(usage) = &case.usage else { return "–".to_owned() };
    match (side(&usage.baseline), side(&usage.new)) {
        (None, None) => "–".to_owned(),
        (baseline, new) => {
            format!("{} → {}", baseline.as_deref().unwrap_or("–"), new.as_deref().unwrap_or("–"))
        }
    }
}
