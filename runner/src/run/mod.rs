//! A run from start to summary: the run folder, the scheduler, and one case at a time.

mod agent_down;
mod case_runner;
mod error;
mod execute;
mod scheduler;
mod started_run;

pub use error::{ResumeError, RunError};
pub use execute::{Summary, run};
