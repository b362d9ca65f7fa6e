//! Executes contracts: claims them, obtains their output, verifies it, undoes failed work, and records each step.
//!
//! ```text
//! resources ─▶ claimed ─▶ executing: output ─▶ verifying ─▶ completed
//!                                                      └──▶ failed ─▶ rolling_back ─▶ rolled_back
//! ```
//!
//! Each arrow is a durable line in the store before the next step begins. An execution that was killed continues from there.

mod start;
mod transitions;
mod execute;
mod hold;
mod outcome;
mod undo;

use std::collections::BTreeMap;
use std::ffi::OsString;

pub use start::{host_name, was_interrupted, ExecutionStart, ProcessName};
pub use outcome::ExecutionError;
pub(crate) use execute::REQUIRES_APPROVAL;
pub use execute::execute;
pub(crate) use hold::unavailable;
pub use outcome::{AgentRun, Execution, RollbackOutcome, RollbackSummary, Verdict};
pub(crate) use start::rollback_problem;
pub use start::start_details;
pub use outcome::{OutputSource, RollbackMode, RunSettings};

/// Variables to set or to remove for the commands of an execution.
type Environment = BTreeMap<OsString, Option<OsString>>;
