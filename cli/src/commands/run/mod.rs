//! `counterproof run`: runs the cases against an agent and writes a run folder.

mod args;
mod command;
mod confirm;
mod outcome;

pub(crate) use args::{Args, ConfirmOptions, required_cases};
pub(crate) use command::{RunEnd, Session, check_new_ids, limit_open_files, run};
pub(crate) use confirm::{BaselineAgent, Confirmation};
pub(crate) use outcome::{claim_error, run_error};
