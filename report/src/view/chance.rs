//! Whether the difference of a case may be chance, in words.

use counterproof_artifact::evaluation::{CaseEvaluation, CaseMeasure, Evaluation, MeasureCode, Tier};
use counterproof_evaluator::{CaseComparison, is_alone, text};

use super::word::Word;

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
pub(crate) fn sentence(case: &CaseEvaluation, known: Circumstances) -> String {
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

/// The failed runs and all runs of each side.
pub(crate) const fn failures(measure: &CaseMeasure) -> ((u64, u64), (u64, u64)) {
    let (old, new) = (&measure.baseline, &measure.new);
    ((old.runs - old.passed, old.runs), (new.runs - new.passed, new.runs))
}
