//! Judges one case: its expectations, findings, verdict and severity.

mod expect;
mod expectations;
pub mod findings;
pub(crate) mod outcomes;
pub mod severity;
mod steps;
pub mod verdict;

pub use expectations::{Expectations, Judged, SchemaError};
