//! The status of each case between two rounds: decided, or open and included in the next round.

use counterproof_artifact::CaseId;
use counterproof_artifact::evaluation::{CaseMeasure, MeasureCode, Tier};
use rayon::prelude::*;

use super::design::Design;
use super::measures::Measures;
use super::observations::{CaseObservations, Criteria, RunOutcome};
use super::reasons;
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
    let criteria = Criteria { expectations, rules: &rules };
    let survey = |id: &CaseId| CaseObservations::from_runs(baseline, new, criteria, id).0;
    let observed: Vec<CaseObservations> = case_ids.par_iter().map(survey).collect();
    let Measures { by_case, undecidable, .. } = Measures::new(&observed, &Design::from_runs(baseline, new), thresholds);
    let cases = case_ids.iter().zip(&observed).zip(by_case.iter().zip(&undecidable));
    let stand =
        |((case_id, survey), (measures, undecidable)): ((&CaseId, _), (&Vec<CaseMeasure>, &Vec<MeasureCode>))| {
            let (standing, because) = standing(survey, measures, undecidable);
            CaseStatus { case_id: case_id.clone(), standing, why: because.map(reasons::measured) }
        };
    cases.map(stand).collect()
}

/// The status of a case, and the measure that decides it.
fn standing<'a>(
    survey: &CaseObservations,
    measures: &'a [CaseMeasure],
    undecidable: &[MeasureCode],
) -> (RoundStatus, Option<&'a CaseMeasure>) {
    // Tiers are ordered by concern. Among equal tiers and p-values, expectations take precedence over answers.
    let worst = measures.iter().min_by(|a, b| a.tier.cmp(&b.tier).then(a.p.total_cmp(&b.p)).then(b.code.cmp(&a.code)));
    let is_open = |measure: &&CaseMeasure| matches!(measure.tier, Tier::Likely | Tier::Watch | Tier::Unknown);
    // All open measures must be undecidable: a single decidable one keeps the case open.
    let is_given_up = || measures.iter().filter(is_open).all(|measure| undecidable.contains(&measure.code));
    let standing = match worst.map(|measure| measure.tier) {
        Some(Tier::Regression) => RoundStatus::Worse,
        Some(Tier::Likely | Tier::Watch | Tier::Unknown) if is_given_up() => RoundStatus::Undecidable,
        Some(Tier::Likely | Tier::Watch | Tier::Unknown) => RoundStatus::Open,
        Some(Tier::Steady | Tier::Improvement) => RoundStatus::Steady,
        // No measure has counts on both sides yet, so new has not run the case.
        None if survey.baseline.iter().any(RunOutcome::was_sent) => RoundStatus::Open,
        None => RoundStatus::Untested,
    };
    (standing, worst)
}
