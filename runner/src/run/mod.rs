//! A run from its start to its summary: the run folder, the scheduler, and one case at a time.

pub(crate) mod case_runner;
pub(crate) mod scheduler;
pub(crate) mod start;
