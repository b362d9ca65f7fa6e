//! `counterproof guard policy`: checks, explains, compares and tests policies. One file for each subcommand.

mod command;
mod diff;
mod explain;
mod lint;
mod test;

pub(crate) use command::{Args, run_policy as run};
