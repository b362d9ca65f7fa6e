//! Converts what others recorded to run folders of `case.v1` artifacts, which `counterproof compare` reads.
//!
//! ```text
//! records of safe-run ──▶ commands ─┐
//! runs of a ledger ─────▶ ledger ───┼─▶ RunBuilder: artifacts, assets, manifest, run.json
//! sessions of agents ───▶ sessions ──┤
//! contract executions ──▶ contracts ┘                └─▶ cases file, for the exports with expectations
//! ```
//!
//! The recorders know neither cases nor this crate.

mod cases_file;
pub mod commands;
#[cfg(unix)]
pub mod contracts;
pub mod ledger;
mod run_builder;
pub mod sessions;

pub use cases_file::CasesFileError;
pub use run_builder::Destination;
