//! Exports of an evaluation for other programs: a Markdown summary, JUnit test results and SARIF results.
//!
//! Each export is a function from the evaluation to a text. Nothing about a case is decided here.

mod junit;
mod markdown;
mod report_context;
mod report_url;
mod root_cause_rows;
pub mod sarif;
mod summary;
mod write;

pub use report_context::{CaseLocation, ReportContext};
pub use report_url::{ReportUrl, ReportUrlError};
pub use summary::{SUMMARY_UP_TO_BYTES, summary};
pub(crate) use write::write;
