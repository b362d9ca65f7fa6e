//! The runs of one side: one, or the repeats of one version.

use std::collections::HashSet;

use counterproof_artifact::CaseId;
use counterproof_store::ReadError;

use crate::load::ComparedRun;

/// The runs of one side, in the order in which they were named; there is always a first.
#[derive(Debug)]
pub struct SideRuns {
    runs: Vec<ComparedRun>,
}

impl SideRuns {
    /// A side of these runs; `None` if there are none.
    pub fn new(runs: Vec<ComparedRun>) -> Option<Self> {
        (!runs.is_empty()).then_some(Self { runs })
    }

    /// The run that stands for the side where one has to: the first.
    pub fn first(&self) -> &ComparedRun {
        &self.runs[0]
    }

    /// The run at a place in the order.
    pub fn get(&self, index: usize) -> Option<&ComparedRun> {
        self.runs.get(index)
    }

    /// All runs.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &ComparedRun> {
        self.runs.iter()
    }

    /// True where the side has more than one run.
    pub const fn is_repeated(&self) -> bool {
        self.runs.len() > 1
    }

    /// Every case of any run: in the first run's order, then those that only later runs have.
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
