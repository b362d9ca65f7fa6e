//! Compares two runs: a verdict on each case and the gate on all of them.

mod compare;
pub mod evaluation_text;
pub mod rerender;

pub use compare::{CaseComparison, CompareError, Request, compare, pair};
