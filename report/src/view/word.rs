//! The words for what became of a case and for whether it may be chance, which all pages share. Each word has one sign and one
//! colour, and covers several verdicts of the evaluation.

use counterproof_artifact::evaluation::{CaseEvaluation, CaseMeasure, Evaluation, MeasureCode, Tier, Verdict};
use counterproof_evaluator::{AddedCase, CaseComparison, is_alone, text};

/// What became of a case, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Word {
    Worse,
    Failed,
    /// Without a baseline: an expectation is not met.
    Unmet,
    NotCompared,
    Different,
    Noise,
    Better,
    Same,
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

    /// The CSS class, which also names lists and filters, the sign and the text.
    const fn parts(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Word::Worse => ("worse", "✗", "worse"),
            Word::Failed => ("failed", "✗", "failed to answer"),
            Word::NotCompared => ("not-compared", "!", "not compared"),
            Word::Different => ("different", "~", "different"),
            Word::Noise => ("noise", "·", "noise"),
            Word::Better => ("better", "✓", "better"),
            Word::Same => ("same", "=", "same"),
            Word::Unmet => ("unmet", "✗", "unmet"),
            Word::Met => ("met", "✓", "met"),
        }
    }

    pub(crate) const fn class(self) -> &'static str {
        self.parts().0
    }

    /// The sign, because colour is never the only one.
    pub(crate) const fn sign(self) -> &'static str {
        self.parts().1
    }

    pub(crate) const fn as_str(self) -> &'static str {
        self.parts().2
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

/// What is known of all cases of a comparison.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Circumstances {
    /// Whether there is no baseline.
    pub(crate) is_alone: bool,
    /// Whether the agent does the same in every run.
    pub(crate) is_deterministic: bool,
}

impl Circumstances {
    pub(crate) fn of(evaluation: &Evaluation) -> Self {
        Self { is_alone: is_alone(evaluation), is_deterministic: evaluation.deterministic }
    }

    pub(crate) const fn of_comparison(case: &CaseComparison<'_>) -> Self {
        Self { is_alone: case.is_alone, is_deterministic: case.is_deterministic }
    }
}

/// Whether the difference may be chance.
pub(crate) fn chance(case: &CaseEvaluation, known: Circumstances) -> String {
    if known.is_deterministic {
        return "Not chance: the agent does the same in every run.".to_owned();
    }
    if known.is_alone {
        return "Unknown: there is no baseline.".to_owned();
    }
    let Some(solved) = case.measure(MeasureCode::Solved) else {
        return match case.repeats {
            None => "Unknown: seen in 1 of 1 run; baseline also ran once.".to_owned(),
            Some(_) => "Unknown: the runs have nothing to count.".to_owned(),
        };
    };
    let ((old_failed, old_runs), (failed, runs)) = failures(solved);
    if failed == 0 && old_failed == 0 {
        return "May be chance: no run fails.".to_owned();
    }
    let counts = format!(
        "fails in {failed} of {}, baseline in {old_failed} of {old_runs}",
        text::count(usize::try_from(runs).unwrap_or(usize::MAX), "run", "runs")
    );
    let word = match (solved.tier, case.unconfirmed) {
        (Tier::Regression, _) => "Not chance",
        (_, false) if Word::of_verdict(case.verdict) == Word::Worse => "Not chance",
        _ => "May be chance",
    };
    format!("{word}: {counts}.")
}

/// In how many runs of each side a case fails: `3 of 4, baseline 0 of 4`. `None` if it fails in no run.
pub(crate) fn seen_in(measure: &CaseMeasure) -> Option<String> {
    let ((old_failed, old_runs), (failed, runs)) = failures(measure);
    (failed + old_failed > 0).then(|| format!("{failed} of {runs}, baseline {old_failed} of {old_runs}"))
}

/// The failed runs and all runs of each side.
pub(crate) const fn failures(measure: &CaseMeasure) -> ((u64, u64), (u64, u64)) {
    let (old, new) = (&measure.baseline, &measure.new);
    ((old.runs - old.passed, old.runs), (new.runs - new.passed, new.runs))
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
