//! The tables of a ledger: one definition for all databases.
//!
//! Events arrive in any order, in batches of any size, and more than once. Every column therefore states how two values for the
//! same row become one ([`Merge`]), and the order of the events does not matter. The same rules merge rows in memory and in the
//! database.

mod row;
mod schema;

pub use row::{Cell, Row};
pub(crate) use row::{Kind, MergedRows, Table};
pub(crate) use schema::{
    ALL, Dialect, HINTS, INDEXES, POLICY_VERSIONS, PREVIEWS, RUN_SOURCES, RUNS, SCHEMA_VERSION, TOOL_CALLS,
    create_events, create_index, create_table, on_conflict,
};
