//! What `run --confirm` needs to know about lost cases: how many confirmation runs decide, and which cases are run again.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use counterproof_artifact::{CaseId, Side, Sides};
use counterproof_store::ReadError;
use rayon::prelude::*;

use super::analysis::LOST_SHARE;
use super::measures::{ConfirmationRuns, LostCounts};
use super::observations::{CaseObservations, Criteria};
use crate::comparison::pair;
use crate::judge::Expectations;
use crate::load::SideRuns;
use crate::rules::Rules;
use crate::statistics::{ConfirmationCount, Thresholds, deciding_baseline};

/// The runs of cases that all runs of the baseline solved and no run of new, and of the cases that they are judged with.
#[derive(Debug)]
pub struct LostCases {
    cases: Vec<(CaseId, LostCounts)>,
    /// The level of the test of lost cases.
    level: f64,
    /// The largest number of baseline runs that is suggested.
    most: u32,
}

impl LostCases {
    /// Reads the results of all runs, or only those of some cases. Confirmation runs count as such.
    pub fn read(
        runs: Sides<&SideRuns>,
        expectations: &Expectations,
        thresholds: &Thresholds,
        only: Option<&HashSet<CaseId>>,
    ) -> Result<Self, ReadError> {
        let Sides { baseline, new } = runs;
        let mut ids = pair(baseline, new)?;
        ids.retain(|id| only.is_none_or(|only| only.contains(id)));
        // Rules of comparison do not affect pass rates.
        let rules = Rules::default();
        let criteria = Criteria { expectations, rules: &rules, side: Side::New };
        let confirms = ConfirmationRuns::from_runs(baseline, new);
        let count = |id: CaseId| {
            let results = CaseObservations::from_runs(baseline, new, criteria, &id).0.results();
            (id, LostCounts::from_case(&results, &confirms))
        };
        let cases = ids.into_par_iter().map(count).collect();
        Ok(Self { cases, level: thresholds.alpha.value() * LOST_SHARE, most: thresholds.more_runs_up_to })
    }

    /// The cases that are lost if they keep failing.
    pub fn candidates(&self) -> HashSet<CaseId> {
        self.with(LostCounts::can_be_lost)
    }

    /// The candidates that have fewer results of confirmation runs than planned. A runner error may be no result.
    pub fn unfinished(&self, planned: Sides<u32>) -> HashSet<CaseId> {
        self.with(|case| case.can_be_lost() && !case.has_all(planned))
    }

    fn with(&self, holds: impl Fn(&LostCounts) -> bool) -> HashSet<CaseId> {
        self.cases.iter().filter(|(_, case)| holds(case)).map(|(id, _)| id.clone()).collect()
    }

    /// Chooses the number of confirmation runs from a range, if this many cases flipped.
    pub fn confirmation_count(&self, flipped: usize, repeats_baseline: bool, runs: RangeInclusive<u32>) -> ConfirmationCount {
        let first: Vec<Sides<u32>> = self.cases.iter().map(|(_, case)| case.first()).collect();
        ConfirmationCount::new(&first, flipped, repeats_baseline, runs, self.level)
    }

    /// The smallest number of baseline runs with which this many lost cases are convicted after the planned confirmation runs. `None`
    /// if no reasonable number is enough.
    pub fn deciding_baseline(&self, lost: usize, planned: Sides<u32>) -> Option<u32> {
        let cases: Vec<_> = self.cases.iter().map(|(_, case)| case.lost_runs(planned)).collect();
        deciding_baseline(&cases, lost, self.level, self.most)
    }
}
