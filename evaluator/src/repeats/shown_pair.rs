//! Chooses the pair of runs that the report shows for a case: one in which the deciding difference is visible.
//! A pair is an index into the runs of each side.

use counterproof_artifact::Sides;
use counterproof_artifact::evaluation::{CaseMeasure, MeasureCode, Tier};

use super::noise::DifferingPlace;
use super::observations::{CaseObservations, RunOutcome};

/// The pair for a case that is decided by the state of its artifacts: invalid before answer, answer before failure.
pub(super) fn by_states(case: &CaseObservations) -> Sides<usize> {
    let weight = |run: &RunOutcome| match run {
        RunOutcome::Invalid => 0,
        RunOutcome::Answered(_) => 1,
        RunOutcome::Failed => 2,
        RunOutcome::Absent => 3,
        RunOutcome::NotSelected => 4,
    };
    let first = |runs: &[RunOutcome]| {
        let runs = runs.iter().enumerate();
        runs.min_by_key(|(index, run)| (weight(run), *index)).map_or(0, |(index, _)| index)
    };
    Sides { baseline: first(&case.baseline), new: first(&case.new) }
}

/// The pair for a case with answers on both sides: the first pair that shows the change of the deciding measure; else the first
/// that differs at the first listed place; else the first run of each side.
pub(super) fn by_answers(case: &CaseObservations, measures: &[CaseMeasure], places: &[DifferingPlace]) -> Sides<usize> {
    // An undecided measure explains something only if its rate fell.
    let by_tier = |tier: Tier| {
        let moved = measures.iter().filter(move |measure| measure.tier == tier);
        moved.filter(move |measure| tier != Tier::Unknown || measure.is_lower_on_new())
    };
    let tiers = [Tier::Regression, Tier::Improvement, Tier::Likely, Tier::Watch, Tier::Unknown];
    let by_measure = tiers.into_iter().flat_map(by_tier).find_map(|measure| {
        let (before, after) = match measure.tier {
            Tier::Improvement => (Outcome::Fails, Outcome::Passes),
            _ => (Outcome::Passes, Outcome::Fails),
        };
        Some(Sides {
            baseline: first_with(&case.baseline, measure.code, before)?,
            new: first_with(&case.new, measure.code, after)?,
        })
    });
    // A hard expectation decides in any run, so a run that does not meet one is shown before all others.
    let by_must = case.new.iter().position(|run| run.must_unmet().is_some()).map(|new| {
        let met = case.baseline.iter().position(|run| run.answered().is_some() && run.must_unmet().is_none());
        Sides {
            baseline: met.or_else(|| case.baseline.iter().position(|run| run.answered().is_some())).unwrap_or(0),
            new,
        }
    });
    by_must
        .or(by_measure)
        .or_else(|| places.first().and_then(|place| differing(case, place.place)))
        .unwrap_or_else(|| by_states(case))
}

/// Whether a run passes a measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Passes,
    Fails,
}

fn first_with(runs: &[RunOutcome], code: MeasureCode, wanted: Outcome) -> Option<usize> {
    runs.iter().position(|run| run.result().passes(code) == Some(wanted == Outcome::Passes))
}

fn differing(case: &CaseObservations, place: u64) -> Option<Sides<usize>> {
    let label = |run: &RunOutcome| run.answered().map(|answered| answered.labels.at(place));
    // The earliest run of new first: the pair does not change when later runs are added.
    case.new.iter().enumerate().find_map(|(new, other)| {
        let other = label(other)?;
        let baseline = case.baseline.iter().position(|run| label(run).is_some_and(|label| label != other))?;
        Some(Sides { baseline, new })
    })
}
