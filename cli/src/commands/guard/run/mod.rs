//! `counterproof guard run`: runs an agent as one run, and records its start and its end.

mod agent_recording;
mod command;
mod run_id;
mod run_ledger;
mod settings;

pub(super) use command::{Args, run};
