//! Exports of an evaluation for other programs: a Markdown summary, JUnit test results and SARIF results.
//!
//! Each export is a function from the evaluation to a text. Nothing about a case is decided here.

mod context;
mod junit;
mod markdown;
pub mod sarif;
mod summary;
mod write;

pub use context::{CaseLocation, ReportContext, ReportUrl, ReportUrlError};
pub use summary::{SUMMARY_UP_TO_BYTES, summary};
pub(crate) use write::write;
