//! Hints at a fall: cases that look worse in the runs so far. They are worth a confirmation, and prove nothing.

use counterproof_artifact::evaluation::MeasureCode;
use counterproof_artifact::{CaseId, Side};
use rayon::prelude::*;

use super::measures::{ConfirmationRuns, case_runs};
use super::observations::{CaseObservations, Criteria};
use crate::judge::Expectations;
use crate::load::SideRuns;
use crate::messages;
use crate::rules::Rules;
use crate::statistics::{CaseTallies, CaseTests, Tally, Thresholds, is_hint};
use crate::values::text;

/// Returns the cases with a hint, each with its counts, in the order of `case_ids`. Confirmation runs are not counted. The test of
/// confirmed cases conditions on this choice, so both use the same function.
pub(crate) fn hints(
    baseline: &SideRuns,
    new: &SideRuns,
    case_ids: &[CaseId],
    expectations: &Expectations,
    thresholds: &Thresholds,
) -> Vec<(CaseId, String)> {
    // Rules of comparison do not affect pass rates.
    let rules = Rules::default();
    let criteria = Criteria { expectations, rules: &rules, side: Side::New };
    let confirms = ConfirmationRuns::from_runs(baseline, new);
    let count = |id: &CaseId| {
        let results = CaseObservations::from_runs(baseline, new, criteria, id).0.results();
        case_runs(MeasureCode::Solved, &results, &confirms).initial
    };
    let counted: Vec<CaseTallies> = case_ids.par_iter().map(count).collect();
    let mut tests = CaseTests::default();
    let hints = case_ids.iter().zip(counted).filter(|(_, case)| is_hint(*case, &mut tests, thresholds));
    hints.map(|(id, case)| (id.clone(), counts(case))).collect()
}

fn counts(case: CaseTallies) -> String {
    let runs = |tally: Tally| text::count(tally.runs() as usize, "run", "runs");
    format!(
        "{} in {} of {}, baseline in {} of {}",
        messages::measure(MeasureCode::Solved),
        case.new.passed,
        runs(case.new),
        case.baseline.passed,
        case.baseline.runs(),
    )
}
