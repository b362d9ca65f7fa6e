//! `counterproof guard secrets`: manages the file of secrets.

mod add;
mod command;
mod list;
mod open_store;
mod remove;

pub(super) use command::{Args, run_secrets as run};
