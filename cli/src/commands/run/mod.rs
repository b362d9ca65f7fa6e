//! `counterproof run`: runs the cases against an agent and writes a run folder.

mod command;
mod failure_hints;
mod outcome;

pub(crate) use command::{Args, run};
