//! Several runs a side: how often things hold, what is noise, and what can be concluded.
//!
//! Two passes: the first looks at every run of every case and keeps a few hundred bytes of each (`survey`); then all cases are
//! judged together (`measures`, `noise`); the second pass, the caller's, reads the pair of runs that is shown of each case.
//! With one run a side there is nothing to learn here.

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
