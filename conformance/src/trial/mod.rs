//! One execution of a program with a vector, in its own folder.

mod execution;
mod process;
mod snapshot;

pub(crate) use execution::TrialError;
pub(crate) use execution::{Trial, TrialOutcome};
pub(crate) use snapshot::FileContents;
#[cfg(test)]
pub(crate) use snapshot::Snapshot;
