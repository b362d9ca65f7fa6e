//! Compares two runs: a verdict on each case and the gate on all of them.

mod case;
mod compare;
pub mod evaluation_text;
pub mod rerender;

pub use case::CaseComparison;
pub use compare::{CompareError, Request, compare, pair};
pub use compare::{FlippedCase, flipped_cases};
