//! The agent as a program that is started for one attempt.

pub(crate) mod agent_process;
#[cfg(unix)]
mod supervised;
#[cfg(not(unix))]
mod unsupervised;
