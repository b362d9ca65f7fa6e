//! Where each case stands between two rounds: decided, or open and to be asked again.

use counterproof_artifact::CaseId;
use counterproof_artifact::evaluation::{CaseMeasure, MeasureCode, Tier};
use rayon::prelude::*;

use super::design::Design;
use super::measures::Measures;
use super::sentences;
use super::survey::{CaseSurvey, JudgedBy, RunOutcome};
use crate::judge::Expectations;
use crate::load::SideRuns;
use crate::rules::Rules;
use crate::statistics::Thresholds;

/// What another round would be good for in a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// It became worse: nothing that comes takes that back.
    Worse,
    /// It may have become worse, or not: another round may tell.
    Open,
    /// It did not become much worse.
    Steady,
    /// It may have become worse, or not, and whatever comes in the rounds that are left, they will not tell: there are too few
    /// of them, or the baseline has too few runs.
    Undecidable,
    /// The baseline was not asked, or what it has cannot be counted: no number of rounds can tell.
    Untested,
}

/// One case between two rounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseStanding {
    /// The case.
    pub case_id: CaseId,
    /// Where it stands.
    pub standing: Standing,
    /// The counts that say so; nothing before there are any.
    pub why: Option<String>,
}

/// Where the cases stand after the rounds of new so far, in their order.
pub fn standings(
    baseline: &SideRuns,
    new: &SideRuns,
    case_ids: &[CaseId],
    expectations: &Expectations,
    thresholds: &Thresholds,
) -> Vec<CaseStanding> {
    // Only what is counted matters here, and rules have no say in that.
    let rules = Rules::default();
    let judged_by = JudgedBy { expectations, rules: &rules };
    let survey = |id: &CaseId| CaseSurvey::of(baseline, new, judged_by, id).0;
    let surveyed: Vec<CaseSurvey> = case_ids.par_iter().map(survey).collect();
    let Measures { by_case, undecidable, .. } = Measures::of(&surveyed, &Design::of(baseline, new), thresholds);
    let cases = case_ids.iter().zip(&surveyed).zip(by_case.iter().zip(&undecidable));
    let stand =
        |((case_id, survey), (measures, undecidable)): ((&CaseId, _), (&Vec<CaseMeasure>, &Vec<MeasureCode>))| {
            let (standing, because) = standing(survey, measures, undecidable);
            CaseStanding { case_id: case_id.clone(), standing, why: because.map(sentences::measured) }
        };
    cases.map(stand).collect()
}

/// Where a case stands, and the measure that says so.
fn standing<'a>(
    survey: &CaseSurvey,
    measures: &'a [CaseMeasure],
    undecidable: &[MeasureCode],
) -> (Standing, Option<&'a CaseMeasure>) {
    // The tiers are in the order of concern; of equal ones, that an expectation is met says more than that there is an answer.
    let worst = measures.iter().min_by(|a, b| a.tier.cmp(&b.tier).then(a.p.total_cmp(&b.p)).then(b.code.cmp(&a.code)));
    let is_open = |measure: &&CaseMeasure| matches!(measure.tier, Tier::Likely | Tier::Watch | Tier::Unknown);
    let is_given_up = || measures.iter().filter(is_open).all(|measure| undecidable.contains(&measure.code));
    let standing = match worst.map(|measure| measure.tier) {
        Some(Tier::Regression) => Standing::Worse,
        Some(Tier::Likely | Tier::Watch | Tier::Unknown) if is_given_up() => Standing::Undecidable,
        Some(Tier::Likely | Tier::Watch | Tier::Unknown) => Standing::Open,
        Some(Tier::Steady | Tier::Improvement) => Standing::Steady,
        None if survey.baseline.iter().any(RunOutcome::was_asked) => Standing::Open,
        None => Standing::Untested,
    };
    (standing, worst)
}
