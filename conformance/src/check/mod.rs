//! Checks of what a program did: the expectations of the vector, the rules of every ledger, and comparisons of whole outcomes.

mod compare;
mod expectations;
mod golden;

pub(crate) use compare::compare;
pub(crate) use expectations::check_expectations;
pub(crate) use golden::Golden;
pub(crate) use golden::check_ledgers;
