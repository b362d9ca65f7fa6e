//! Facts: the results of comparisons as Parquet files, one file per comparison with a row per case, side and run. Databases read
//! them, and so does the history, without the evaluations.
//!
//! ```text
//! evaluation.json, run folders ──▶ rows ──▶ columns ──▶ file: write ──▶ FACTS/<start>--<new>--<baseline>.parquet
//!                                                       file: read ──▶ history
//! ```
//!
//! docs/scale.md describes each column; a test compares it with `columns.rs`.

mod columns;
mod file;
mod rows;
#[cfg(test)]
mod tests;

pub use file::{FactsError, FactsFile, FactsReadError, find};
pub use rows::{Facts, RunFolders};
