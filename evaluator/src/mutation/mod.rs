//! Faults put into recorded answers, to see which of them the gate finds.
//!
//! A [`Fault`] changes one answer, and knows an expectation that the change breaks. [`survey`] compares each changed answer with
//! the original, and reports what the gate did not see.

mod fault;
mod place;
mod survey;

pub use fault::Fault;
pub use survey::{FaultReport, survey};
