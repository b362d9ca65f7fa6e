//! `counterproof guard`: inspects, decides about and records the tool calls of agents. One file or folder for each subcommand.

mod command;
mod secrets;

pub(crate) use command::{Args, run_guard as run};
