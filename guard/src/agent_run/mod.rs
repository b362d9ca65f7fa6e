//! Runs an agent as one run: every shim below it has the same identity, policy and ledger.

mod variables;

pub use variables::{LEDGER, POLICY, TERMINATION, VARIABLES};
