//! `counterproof check`: the one command for a laptop, a pull request and a night. It starts the agent, runs the cases,
//! confirms what looks worse, compares with the baseline and reports the verdict.

mod args;
mod command;
mod output;
mod selection;
mod steps;
mod watch;

pub(crate) use args::Args;
pub(crate) use command::run;
pub(crate) use output::{print_json_error, wants_json};
