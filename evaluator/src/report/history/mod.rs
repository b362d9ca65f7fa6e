//! Many nights in, one page out: how the verdicts and the gate went over time, which cases flip, and since when a case is wrong.
//!
//! Evaluations are read one at a time, and what stays of each is a verdict a case and a handful of numbers. Nothing is judged
//! here: what was said of a case in a night is what its evaluation says.
//!
//! ```text
//! folders ──▶ find ──▶ evaluation.json, one at a time ──▶ nights, cases ──▶ chart, page ──▶ index.html  static/
//! ```

mod cases;
mod chart;
mod find;
mod folder;
mod nights;
mod page;

pub use find::{LeftOut, find};
pub use folder::{HistoryError, prepare, write};
pub use nights::{History, Place};
