//! `counterproof run`: runs the cases against an agent and writes a run folder.

mod args;
mod command;
mod confirm;
mod outcome;

pub(crate) use args::Args;
pub(crate) use command::run;
