//! The words for what became of a case, which all pages share. Each word has one sign and one colour, and the verdicts of the
//! evaluation are below it.

use counterproof_artifact::evaluation::{CaseEvaluation, Verdict};
use counterproof_evaluator::AddedCase;

/// What became of a case, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Word {
    Worse,
    Failed,
    NotCompared,
    Different,
    Noise,
    Better,
    Same,
    /// Without a baseline: an expectation is not met.
    Unmet,
    /// Without a baseline: answered, and no expectation is missed.
    Met,
}

impl Word {
    pub(crate) const ALL: [Word; 9] = [
        Word::Worse,
        Word::Failed,
        Word::Unmet,
        Word::NotCompared,
        Word::Different,
        Word::Noise,
        Word::Better,
        Word::Same,
        Word::Met,
    ];

    /// The word for a case. `is_alone` is true where there is no baseline.
    pub(crate) fn of_case(case: &CaseEvaluation, is_alone: bool) -> Self {
        match AddedCase::find(case) {
            Some(AddedCase::Good) => return Word::Met,
            Some(AddedCase::Unmet) => return Word::Unmet,
            Some(AddedCase::Unanswered) => return Word::Failed,
            None => {}
        }
        match case.verdict {
            Verdict::Broken | Verdict::StillBroken => Word::Failed,
            Verdict::Unchanged if is_alone && case.is_unmet_on_new() => Word::Unmet,
            Verdict::Unchanged if is_alone => Word::Met,
            verdict => Self::of_verdict(verdict),
        }
    }

    pub(crate) const fn of_verdict(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Regressed => Word::Worse,
            Verdict::Broken | Verdict::StillBroken => Word::Failed,
            Verdict::Invalid | Verdict::Missing | Verdict::Added | Verdict::NotComparable => Word::NotCompared,
            Verdict::Changed | Verdict::Undecided => Word::Different,
            Verdict::Noisy => Word::Noise,
            Verdict::Improved | Verdict::Recovered => Word::Better,
            Verdict::Unchanged => Word::Same,
        }
    }

    /// The CSS class, also used in names of lists and in the address.
    pub(crate) const fn class(self) -> &'static str {
        match self {
            Word::Worse => "worse",
            Word::Failed => "failed",
            Word::NotCompared => "not-compared",
            Word::Different => "different",
            Word::Noise => "noise",
            Word::Better => "better",
            Word::Same => "same",
            Word::Unmet => "unmet",
            Word::Met => "met",
        }
    }

    /// The sign, because colour is never the only one.
    pub(crate) const fn sign(self) -> &'static str {
        match self {
            Word::Worse | Word::Failed | Word::Unmet => "✗",
            Word::NotCompared => "!",
            Word::Different => "~",
            Word::Noise => "·",
            Word::Better | Word::Met => "✓",
            Word::Same => "=",
        }
    }

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Word::Worse => "worse",
            Word::Failed => "failed to answer",
            Word::NotCompared => "not compared",
            Word::Different => "different",
            Word::Noise => "noise",
            Word::Better => "better",
            Word::Same => "same",
            Word::Unmet => "unmet",
            Word::Met => "met",
        }
    }
}

/// The label of a case: its word, and whether it may be chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) word: Word,
    /// Whether the runs do not exclude chance. It is part of the label everywhere.
    pub(crate) is_unconfirmed: bool,
}

impl Label {
    pub(crate) fn of_case(case: &CaseEvaluation, is_alone: bool) -> Self {
        Self { word: Word::of_case(case, is_alone), is_unconfirmed: case.unconfirmed }
    }

    pub(crate) const fn class(self) -> &'static str {
        self.word.class()
    }

    pub(crate) const fn sign(self) -> &'static str {
        self.word.sign()
    }

    pub(crate) const fn text(self) -> &'static str {
        self.word.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_has_its_own_text_and_class() {
        let distinct = |of: fn(Word) -> &'static str| {
            Word::ALL.into_iter().map(of).collect::<std::collections::BTreeSet<_>>().len()
        };
        assert_eq!((distinct(Word::as_str), distinct(Word::class)), (9, 9));
    }
}
