//! Exports of an evaluation for other programs: a Markdown summary, JUnit test results and SARIF results.
//!
//! Each export is a function from the evaluation to a text. Nothing about a case is decided here.

mod context;
pub(crate) mod junit;
pub mod sarif;
mod summary;

pub use context::{CaseLocation, ReportContext, ReportUrl, ReportUrlError};
pub use summary::{SUMMARY_UP_TO_BYTES, summary};
