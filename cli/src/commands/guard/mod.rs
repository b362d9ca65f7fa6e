//! `counterproof guard`: inspects, decides about and records the tool calls of agents. One file or folder for each subcommand.

mod client_config;
mod command;
mod demo;
mod event_recording;
mod import;
mod listen_address;
mod policy;
mod policy_args;
mod policy_file;
mod proxy;
mod restore;
mod run;
mod secrets;
mod shim;
mod shim_settings;
mod warnings;

pub(crate) use command::{Args, run_guard as run};
