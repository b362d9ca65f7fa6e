//! A case as a row: its result, the request, the effects, in how many runs it is seen, and how long both sides took.

use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, MeasureCode, UsageCode};
use counterproof_evaluator::{ReasonCode, is_alone, messages};

use crate::site::Site;
use crate::view::chance::failures;
use crate::view::display;
use crate::view::word::{Label, Word};

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

impl CaseRow {
    pub(crate) fn new(site: &Site<'_>, evaluation: &Evaluation, case: &CaseEvaluation) -> Self {
        let label = Label::of_case(case, is_alone(evaluation));
        let effects = &case.story.effects;
        let mut shown: Vec<_> =
            effects.iter().take(EFFECTS_SHOWN).map(|effect| display::visible(&messages::effect(effect))).collect();
        if effects.len() > EFFECTS_SHOWN {
            shown.push(format!("and {} more", effects.len() - EFFECTS_SHOWN));
        }
        let asked = case.story.asked.as_deref().or(case.title.as_deref()).unwrap_or_default();
        Self {
            href: site.case_href(case),
            case_id: case.case_id.to_string(),
            asked: display::visible(asked),
            label,
            note: note(case, label.word),
            effects: shown,
            seen: Seen::of_case(case, label.word),
            duration: duration(case),
        }
    }
}

/// What a row says besides the writes: why the case is worse, or what differs where no write does.
fn note(case: &CaseEvaluation, word: Word) -> String {
    let Some(first) = case.reasons.first() else {
        return if word == Word::Same { "no difference".to_owned() } else { String::new() };
    };
    let is_of = |code: ReasonCode| code.is_code_of(first);
    if ReasonCode::OutputChanged.is_code_of(first) {
        let words = first.message.strip_prefix("output: ").unwrap_or(&first.message);
        return format!("answer only: {}", display::visible(words));
    }
    let is_expectation = is_of(ReasonCode::ExpectationFailed) || is_of(ReasonCode::MustUnmet);
    let decides = matches!(word, Word::Worse | Word::Failed | Word::NotCompared | Word::Unmet);
    // The effects say what an action did; a missed expectation is more than that.
    if case.story.effects.is_empty() || (decides && is_expectation) {
        display::visible(&first.message)
    } else {
        String::new()
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
            text: format!("{} of {}, baseline {} of {}", new.0, new.1, baseline.0, baseline.1),
            new: squares(new),
            baseline: squares(baseline),
        }
    }
}

fn duration(case: &CaseEvaluation) -> String {
    let side = |side: &Option<counterproof_artifact::evaluation::SideUsage>| {
        side.as_ref()
            .and_then(|side| side.get(UsageCode::Duration))
            .map(|value| messages::usage::amount(UsageCode::Duration, value, None))
    };
    let Some(usage) = &case.usage else { return "–".to_owned() };
    match (side(&usage.baseline), side(&usage.new)) {
        (None, None) => "–".to_owned(),
        (baseline, new) => {
            format!("{} → {}", baseline.as_deref().unwrap_or("–"), new.as_deref().unwrap_or("–"))
        }
    }
}
