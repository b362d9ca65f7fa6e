//! Compares two runs: a verdict on each case and the gate on all of them.

mod case;
mod compare;
pub mod evaluation_text;
mod flipped;
pub mod rerender;
mod run_signals;

pub use case::CaseComparison;
pub use compare::{CompareError, Request, compare, pair};
pub use flipped::{FlippedCase, flipped_cases};
