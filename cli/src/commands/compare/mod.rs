//! `counterproof compare`: compares two run folders and writes a report.

mod command;

pub(crate) use command::{Args, MERGE_FIRST, Pages, compare, read_error, report_error, run, warn_of_other_side};
