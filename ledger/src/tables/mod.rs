//! The tables of a ledger: one definition for all databases.
//!
//! Events arrive in any order, in batches of any size, and more than once. Every column therefore states how two values for the
//! same row become one ([`Merge`]), and the order of the events does not matter. The same rules merge rows in memory and in the
//! database.

mod cell;
mod definitions;
mod merged_rows;
mod row;
mod statements;
mod table;

pub use cell::Cell;
pub(crate) use definitions::{
    ALL, HINTS, INDEXES, POLICY_VERSIONS, PREVIEWS, RUN_SOURCES, RUNS, SCHEMA_VERSION, TOOL_CALLS,
};
pub(crate) use merged_rows::MergedRows;
pub use row::Row;
pub(crate) use statements::{Dialect, create_events, create_index, create_table, on_conflict};
pub(crate) use table::{Kind, Table};
