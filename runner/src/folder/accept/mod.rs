//! Accepting a new run as the baseline.

mod acceptance;
mod copy;

pub use acceptance::{AcceptError, Acceptance, Baseline, accept};
