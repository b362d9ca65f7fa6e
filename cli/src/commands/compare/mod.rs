//! `counterproof compare`: compares two run folders and writes a report.

mod args;
mod cases_check;
mod command;
mod comparison;
mod options;
mod run_warnings;

pub(crate) use args::Args;
pub(crate) use command::run;
pub(crate) use comparison::compare;
pub(crate) use options::{CompareOptions, WriteBack};
