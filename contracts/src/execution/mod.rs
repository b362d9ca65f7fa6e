//! Executes contracts: claims them, obtains their output, verifies it, undoes failed work, and records each step.
//!
//! ```text
//! resources ─▶ claimed ─▶ executing: output ─▶ verifying ─▶ completed
//!                                                      └──▶ failed ─▶ rolling_back ─▶ rolled_back
//! ```
//!
//! Each arrow is a durable line in the store before the next step begins. An execution that was killed continues from there.

mod began;
mod details;
mod error;
mod evidence;
mod execute;
mod hold;
mod outcome;
mod output;
mod recovery;
mod rollback_start;
mod settings;
mod steps;
mod undo;

use std::collections::BTreeMap;
use std::ffi::OsString;

pub use began::{ExecutionStart, ProcessName, host_name, was_interrupted};
pub use error::ExecutionError;
pub(crate) use execute::REQUIRES_APPROVAL;
pub use execute::execute;
pub(crate) use hold::unavailable;
pub use outcome::{AgentRun, Execution, RollbackOutcome, RollbackSummary, Verdict};
pub(crate) use rollback_start::rollback_problem;
pub use rollback_start::start_details;
pub use settings::{OutputSource, RollbackMode, RunSettings};

/// Variables to set or to remove for the commands of an execution.
type Environment = BTreeMap<OsString, Option<OsString>>;
