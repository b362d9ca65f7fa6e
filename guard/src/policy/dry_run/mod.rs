//! Dry runs: what a policy would decide about calls that were recorded.

mod recorded_run;
mod replay;

pub use replay::{DryRun, DryRunDifference, LineProblem, ObservedCalls, dry_run};
