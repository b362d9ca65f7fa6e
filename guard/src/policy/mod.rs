//! Policies: which calls are allowed, throttled, refused, and which end the run.

mod call;
mod decision;

pub use call::{Args, CallFacts, CallOutcome};
pub use decision::Decision;
