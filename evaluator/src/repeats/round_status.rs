//! The status of each case between two rounds: decided, or open and included in the next round.

use counterproof_artifact::evaluation::{CaseMeasure, MeasureCode, Tier};
use counterproof_artifact::{CaseId, Side};
use rayon::prelude::*;

use super::design::Design;
use super::measures::Measures;
use super::observations::{CaseObservations, Criteria};
use super::reasons;
use super::run_result::RunResult;
use crate::judge::Expectations;
use crate::load::SideRuns;
use crate::rules::Rules;
use crate::statistics::Thresholds;

/// The status of a case between two rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RoundStatus {
    /// The case regressed; later rounds do not change this.
    Worse,
    /// Undecided; another round may decide it.
    Open,
    /// A relevant fall is excluded.
    Steady,
    /// Undecided, and no outcome of the remaining rounds can decide it: too few rounds are left, or baseline has too few runs.
    Undecidable,
    /// Baseline has no run that counts, so no number of rounds can decide it.
    Untested,
}

/// One case between two rounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseStatus {
    /// The id of the case.
    pub case_id: CaseId,
    /// The status after the rounds so far.
    pub standing: RoundStatus,
    /// The counts behind the status; `None` before there are any.
    pub why: Option<String>,
}

/// Returns the status of each case after the rounds so far, in the order of `case_ids`.
pub fn round_statuses(
    baseline: &SideRuns,
    new: &SideRuns,
    case_ids: &[CaseId],
    expectations: &Expectations,
    thresholds: &Thresholds,
) -> Vec<CaseStatus> {
    // Only pass rates matter here, and rules of comparison do not affect them.
    let rules = Rules::default();
    let criteria = Criteria { expectations, rules: &rules, side: Side::New };
    let survey = |id: &CaseId| CaseObservations::from_runs(baseline, new, criteria, id).0;
    let observed: Vec<CaseObservations> = case_ids.par_iter().map(survey).collect();
    let results: Vec<_> = observed.iter().map(CaseObservations::results).collect();
    let Measures { by_case, undecidable, .. } = Measures::new(&results, &Design::from_runs(baseline, new), thresholds);
    let cases = case_ids.iter().zip(&observed).zip(by_case.iter().zip(undecidable));
    let stand = |((case_id, survey), (measures, undecidable)): ((&CaseId, _), (&Vec<CaseMeasure>, bool))| {
        let (standing, because) = standing(survey, measures, undecidable);
        CaseStatus { case_id: case_id.clone(), standing, why: because.map(reasons::measured) }
    };
    cases.map(stand).collect()
}

/// The status of a case, and the measure that shows it: the combined measure decides, and a part with the same counts names the
/// reason better.
fn standing<'a>(
    survey: &CaseObservations,
    measures: &'a [CaseMeasure],
    undecidable: bool,
) -> (RoundStatus, Option<&'a CaseMeasure>) {
    let standing = match measures.first().map(|measure| measure.tier) {
        Some(Tier::Regression) => RoundStatus::Worse,
        Some(Tier::Likely | Tier::Watch | Tier::Unknown) if undecidable => RoundStatus::Undecidable,
        Some(Tier::Likely | Tier::Watch | Tier::Unknown) => RoundStatus::Open,
        Some(Tier::Steady | Tier::Improvement) => RoundStatus::Steady,
        // No measure has counts on both sides yet, so new has not run the case.
        None if survey.baseline.iter().any(|run| run.result() != RunResult::Unknown) => RoundStatus::Open,
        None => RoundStatus::Untested,
    };
    // Among the parts, expectations name the reason best, then evidence.
    let explaining = reasons::explaining(measures);
    (standing, explaining.into_iter().max_by_key(|measure| measure.code == MeasureCode::Expectations))
}
