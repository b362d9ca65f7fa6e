//! One execution of a program with a vector, in its own folder.

mod error;
mod execution;
mod process;
mod snapshot;
mod template;

pub(crate) use error::TrialError;
pub(crate) use execution::{Trial, TrialOutcome};
pub(crate) use snapshot::FileContents;
#[cfg(test)]
pub(crate) use snapshot::Snapshot;
