//! Analyses several runs per side: pass rates, noise, and the verdicts that follow from them.
//!
//! The first pass reduces every run of every case to a few hundred bytes (`observations`), and all cases are then judged together
//! (`measures`, `noise`). In the second pass, the caller loads the pair of runs that is shown for each case. Not used with one run
//! per side.

mod analysis;
mod confirming;
mod measures;
pub(crate) mod noise;
mod observations;
mod place;
mod reasons;
mod unseen;

pub(crate) use analysis::{
    CaseAnalysis, LOST_SHARE, Observations, RepeatAnalysis, RepeatInputs, hints, solved_tallies,
};
pub use confirming::{LostCases, smallest_confirmable};
pub(crate) use measures::{CaseResults, RunResult};
pub(crate) use measures::{SuiteAnalysis, suite_rules};
pub(crate) use observations::CaseObservations;
pub(crate) use place::Names;
pub(crate) use reasons::explaining;
