//! `counterproof contract`: stores, runs and inspects executable contracts. One file per subcommand.

mod add;
mod command;
mod compact;
mod decide;
mod diff;
mod graph;
mod list;
mod new;
mod project;
mod run;
mod run_folder;
mod run_reporter;
mod show;
mod transition;

pub(crate) use command::{Args, run_contract as run};
