//! Judges one case: its expectations, findings, verdict and severity.

mod expect;
mod expectations;
pub(crate) mod findings;
pub(crate) mod outcomes;
pub(crate) mod severity;
mod steps;
pub(crate) mod verdict;

pub(crate) use expectations::Judged;
pub use expectations::{Expectations, SchemaError};
