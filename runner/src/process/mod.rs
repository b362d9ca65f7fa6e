//! The agent as a program that is started for each attempt.

mod run_program;
#[cfg(unix)]
mod supervised;
#[cfg(not(unix))]
mod unsupervised;

pub(crate) use run_program::AgentProgram;
