//! Analyses several runs per side: pass rates, noise, and the verdicts that follow from them.
//!
//! The first pass reduces every run of every case to a few hundred bytes (`survey`), and all cases are then judged together
//! (`measures`, `noise`). In the second pass, the caller loads the pair of runs that is shown for each case. Not used with one run
//! per side.

mod decision;
mod design;
mod labels;
mod marks;
mod measures;
mod noise;
mod places;
mod sentences;
mod shown;
mod standing;
mod survey;
pub(crate) mod unplaced;

pub(crate) use decision::{CaseDecision, RepeatInputs, Repeated};
pub(crate) use shown::Shown;
pub use standing::{CaseStanding, Standing, standings};
