//! The agent as a program that is started for each attempt.

mod agent_program;
mod run_program;
#[cfg(unix)]
mod supervised;
#[cfg(not(unix))]
mod unsupervised;

pub(crate) use agent_program::AgentProgram;
