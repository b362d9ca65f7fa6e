//! Checks of what a program did.

mod drift;
mod expectations;
mod golden;
pub(crate) mod ledger;

pub(crate) use drift::drift;
pub(crate) use expectations::judge;
pub(crate) use golden::{File, Golden, Text};
