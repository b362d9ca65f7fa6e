//! The runs of one side: one, or the repeats of one version.

use std::collections::HashSet;

use counterproof_artifact::CaseId;
use counterproof_store::ReadError;

use crate::load::ComparedRun;

/// The runs of one side in the order given. There is at least one.
#[derive(Debug)]
pub struct SideRuns {
    runs: Vec<ComparedRun>,
}

impl SideRuns {
    /// A side of these runs; `None` if there are none.
    pub fn new(runs: Vec<ComparedRun>) -> Option<Self> {
        (!runs.is_empty()).then_some(Self { runs })
    }

    /// Returns the first run, which represents the side where only one run is used.
    pub fn first(&self) -> &ComparedRun {
        &self.runs[0]
    }

    /// Returns the run with this index.
    pub fn get(&self, index: usize) -> Option<&ComparedRun> {
        self.runs.get(index)
    }

    /// Iterates over all runs.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &ComparedRun> {
        self.runs.iter()
    }

    /// Returns the share of the runs that did not solve a case, among those whose labels state it; 0 without a label.
    pub(crate) fn labelled_failed(&self, case_id: &CaseId) -> f64 {
        let labels: Vec<bool> = self.runs.iter().filter_map(|run| run.is_solved(case_id)).collect();
        let failed = labels.iter().filter(|solved| !**solved).count();
        failed as f64 / labels.len().max(1) as f64
    }

    /// True if the side has more than one run.
    pub const fn is_repeated(&self) -> bool {
        self.runs.len() > 1
    }

    /// Returns the cases of all runs: in the order of the first run, then those that only later runs have.
    pub fn case_ids(&self) -> Result<Vec<CaseId>, ReadError> {
        let mut ids = Vec::new();
        let mut known = HashSet::new();
        for run in &self.runs {
            ids.extend(run.case_ids()?.into_iter().filter(|id| known.insert(id.clone())));
        }
        Ok(ids)
    }
}

impl From<ComparedRun> for SideRuns {
    fn from(run: ComparedRun) -> Self {
        Self { runs: vec![run] }
    }
}
