//! `counterproof replay`: sends a recorded request again and compares the answer with the recorded one.

mod args;
mod command;
mod options;
mod recorded_case;

pub(crate) use args::Args;
pub(crate) use command::run;
