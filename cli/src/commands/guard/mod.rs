//! `counterproof guard`: inspects, decides about and records the tool calls of agents. One file or folder for each subcommand.

mod command;
mod policy_file;
mod secrets;
mod shim;

pub(crate) use command::{Args, run_guard as run};
