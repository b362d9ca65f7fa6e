//! Analyses several runs per side: pass rates, noise, and the verdicts that follow from them.
//!
//! The first pass reduces every run of every case to a few hundred bytes (`observations`), and all cases are then judged together
//! (`measures`, `noise`). In the second pass, the caller loads the pair of runs that is shown for each case. Not used with one run
//! per side.

mod analysis;
mod answer_places;
mod hints;
mod labels;
mod measures;
mod noise;
mod noise_marks;
mod observations;
mod place;
mod reasons;
mod run_result;
mod shown_pair;
mod suite;
pub(crate) mod undetected;
mod unseen;

pub(crate) use analysis::{CaseAnalysis, RepeatAnalysis, RepeatInputs};
pub(crate) use hints::hints;
pub(crate) use run_result::{CaseResults, RunResult};
pub(crate) use suite::{SuiteAnalysis, suite_rule};
