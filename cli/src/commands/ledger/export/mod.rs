//! `counterproof ledger export`: the events of a ledger as files, or its runs as artifacts.

mod args;
mod command;
mod events;
mod runs;
mod selection;

pub(super) use args::Args;
pub(super) use command::run;
