//! The subcommands, one file or folder each: an `Args` struct whose doc comments are the help, and a `run` function.

pub(crate) mod accept;
pub(crate) mod calibrate;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod conformance;
pub(crate) mod contract;
pub(crate) mod demo;
pub(crate) mod demo_agent;
pub(crate) mod export_run;
pub(crate) mod guard;
pub(crate) mod history;
pub(crate) mod init;
mod init_files;
pub(crate) mod ledger;
pub(crate) mod man;
pub(crate) mod merge;
pub(crate) mod mutate;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod session;
pub(crate) mod try_agent;
pub(crate) mod validate;
pub(crate) mod workflow;
