//! `counterproof contract`: stores, runs and inspects executable contracts. One file per subcommand.

mod add;
mod claim;
mod command;
mod compact;
mod decide;
mod diff;
mod failure;
mod history;
mod list;
mod project;
mod show;
mod text;
mod transition;
mod validate;

pub(crate) use command::{Args, run};
