//! `counterproof contract`: stores, runs and inspects executable contracts. One file per subcommand.

mod add;
mod claim;
mod command;
mod compact;
mod decide;
mod diff;
mod failure;
mod graph;
mod history;
mod list;
mod page;
mod project;
mod run;
mod run_folder;
mod run_plan;
mod run_reporter;
mod run_settings;
mod run_summary;
mod show;
mod status;
mod text;
mod transition;
mod validate;

pub(crate) use command::{Args, run_contract as run};
