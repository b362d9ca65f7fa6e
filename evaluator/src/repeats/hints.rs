//! Hints at a fall: cases with a measure that looks worse in the runs so far. They are worth a confirmation, and prove nothing.

use counterproof_artifact::CaseId;
use counterproof_artifact::evaluation::MeasureCode;
use rayon::prelude::*;

use super::design::Design;
use super::measures::outcome;
use super::observations::{CaseObservations, Criteria};
use crate::judge::Expectations;
use crate::load::SideRuns;
use crate::messages;
use crate::rules::Rules;
use crate::statistics::{CaseTallies, Tally, Thresholds};
use crate::values::text;

/// Returns the cases with a hint, each with the counts of the first measure that fell, in the order of `case_ids`.
pub(crate) fn hints(
    baseline: &SideRuns,
    new: &SideRuns,
    case_ids: &[CaseId],
    expectations: &Expectations,
    thresholds: &Thresholds,
) -> Vec<(CaseId, String)> {
    // Rules of comparison do not affect pass rates.
    let rules = Rules::default();
    let criteria = Criteria { expectations, rules: &rules };
    let design = Design::from_runs(baseline, new);
    let hint = |id: &CaseId| {
        let (case, _) = CaseObservations::from_runs(baseline, new, criteria, id);
        let codes = [MeasureCode::Answered, MeasureCode::Expectations, MeasureCode::Evidence];
        codes.into_iter().find_map(|code| {
            let tallies = tallies(code, &case, &design);
            is_hint(tallies, thresholds).then(|| (id.clone(), counts(code, tallies)))
        })
    };
    case_ids.par_iter().filter_map(hint).collect()
}

fn tallies(code: MeasureCode, case: &CaseObservations, design: &Design) -> CaseTallies {
    let counted = case.baseline.iter().enumerate().filter(|(run, _)| design.counts(*run));
    let baseline: Tally = counted.filter_map(|(_, run)| outcome(code, run)).collect();
    CaseTallies { baseline, new: case.new.iter().filter_map(|run| outcome(code, run)).collect() }
}

fn is_hint(case: CaseTallies, thresholds: &Thresholds) -> bool {
    case.drop().is_some_and(|drop| drop >= thresholds.watch_drop.value())
}

fn counts(code: MeasureCode, case: CaseTallies) -> String {
    let runs = |tally: Tally| text::count(tally.runs() as usize, "run", "runs");
    format!(
        "{} in {} of {}, baseline in {} of {}",
        messages::measure(code),
        case.new.passed,
        runs(case.new),
        case.baseline.passed,
        case.baseline.runs(),
    )
}
