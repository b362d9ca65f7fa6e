//! Exports of an evaluation for other programs: a Markdown summary, test results for JUnit and CTRF, and SARIF results.
//!
//! Each export is a function from the evaluation to a text. Nothing about a case is decided here.

mod context;
pub mod ctrf;
pub mod junit;
pub mod sarif;
mod summary;
pub mod test_results;

pub use context::{CaseLocation, ReportContext, ReportUrl, ReportUrlError};
pub(crate) use summary::escaped as escaped_markdown;
pub use summary::{SUMMARY_UP_TO_BYTES, summary};
