//! `counterproof ledger`: queries, fills and maintains the ledger of tool calls. One file per subcommand.

mod command;
mod doctor;
mod export;
mod ingest;
mod opened;
mod page;
mod prune;
mod query;
mod runs;
mod tail;

pub(crate) use command::{Args, run};
pub(crate) use opened::{Place, PlaceArgs, Since, age, failed, since};
pub(crate) use runs::{cell, short_time, table};
