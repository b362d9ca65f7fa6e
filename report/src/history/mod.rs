//! The history: one page over many evaluations, with the verdicts and the gate over time, the failing cases, and the cases that
//! change between passing and failing.
//!
//! Evaluations are read one at a time. Of each, the history keeps one status per case and a few numbers. Nothing is judged
//! here: the status of a case follows from its evaluation.
//!
//! ```text
//! folder: find ──▶ evaluation.json, one at a time ──▶ evaluations ──▶ page ──▶ index.html  static/
//! ```

mod evaluations;
mod folder;
mod page;

pub use evaluations::{EvaluationSource, History};
pub use folder::{HistoryFolder, SkippedPath, find};
