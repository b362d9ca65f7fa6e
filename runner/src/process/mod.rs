//! The agent as a program: started for each attempt, or once per worker.

mod persistent;
mod run_program;
#[cfg(unix)]
mod supervised;
#[cfg(not(unix))]
mod unsupervised;

pub(crate) use persistent::PersistentProgram;
pub(crate) use run_program::{AgentProgram, ProcessEvent, ProgramInput, RunningProgram};
