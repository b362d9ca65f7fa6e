//! `counterproof run`: runs the cases against an agent and writes a run folder.

mod args;
mod command;
mod confirm;
mod dry_run;
mod failure_hints;
mod options;
mod outcome;
mod run_error;
mod session;
mod settings;

pub(crate) use args::Args;
pub(crate) use command::run;
