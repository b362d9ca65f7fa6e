//! `counterproof guard`: inspects, decides about and records the tool calls of agents. One file or folder for each subcommand.

mod command;
mod demo;
mod event_recording;
mod import;
mod policy;
mod policy_args;
mod proxy;
mod restore;
mod run;
mod secrets;
mod shim;
mod warnings;

pub(crate) use command::{Args, run_guard as run};
pub(crate) use policy_args::load as load_policy;
pub(crate) use run::{GuardedAgent, UNGUARDED_HINT, exit_of, report};
pub(crate) use shim::absolute_ledger;
