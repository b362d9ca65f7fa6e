//! Executes contracts: claims them, obtains their output, verifies it, undoes failed work, and records each step.
//!
//! ```text
//! resources ─▶ claimed ─▶ executing: output ─▶ verifying ─▶ completed
//!                                                      └──▶ failed ─▶ rolling_back ─▶ rolled_back
//! ```
//!
//! Each arrow is a durable line in the store before the next step begins. An execution that was killed continues from there.

mod execute;
mod locks;
mod outcome;
mod start;
mod transitions;
mod undo;

use std::collections::BTreeMap;
use std::ffi::OsString;

pub(crate) use execute::REQUIRES_APPROVAL;
pub use execute::execute;
pub(crate) use locks::unavailable;
pub use outcome::{AgentRun, Execution, ExecutionError, OutputSource, RollbackMode, RunSettings, VerificationStatus};
pub(crate) use start::rollback_problem;
pub use start::{ExecutionStart, ProcessName, host_name, start_details, was_interrupted};
pub use transitions::reasons;
pub use undo::{RollbackOutcome, RollbackSummary};

/// Variables to set or to remove for the commands of an execution.
pub(crate) type Environment = BTreeMap<OsString, Option<OsString>>;
