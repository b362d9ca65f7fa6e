//! The history: one page over many evaluations, with what fails now, a column a night, and the cases that fail, recovered or alternate.
//!
//! Evaluations are read one at a time. Of each, the history keeps one result per case and a few numbers. Nothing is judged
//! here: the result of a case follows from its evaluation.
//!
//! ```text
//! folder: find ──▶ evaluation.json, one at a time ──▶ evaluations ──▶ nights, page ──▶ index.html  static/
//! ```

mod evaluations;
mod folder;
mod nights;
mod page;

pub(crate) use evaluations::{CaseResult, CaseStatus, Night};
pub use evaluations::{EvaluationSource, History};
pub use folder::{HistoryFolder, SkippedPath, find, source};
#[cfg(test)]
pub(crate) use page::HistoryPage;
