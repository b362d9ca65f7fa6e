//! One run of a program with a vector, in a folder of its own.

mod attempt;
mod process;
mod snapshot;
mod template;

pub(crate) use attempt::{Outcome, Trial};
pub(crate) use snapshot::Contents;
#[cfg(test)]
pub(crate) use snapshot::Snapshot;
