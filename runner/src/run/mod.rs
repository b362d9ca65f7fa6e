//! A run from start to summary: the run folder, the scheduler, and one case at a time.

mod case_runner;
mod conversation_runner;
mod execute;
mod scheduler;
mod started_run;
mod trial;

pub use execute::{ResumeError, RunError};
pub use execute::{Summary, run};
pub use trial::{Trial, TrialExchange, try_once};
