//! The store in a PostgreSQL database, for teams that share one.
//!
//! The tables are in the schema `counterproof`. Writers take turns by an advisory lock. Without it, numbers of events could become
//! visible out of order, and readers that follow the events would miss some.

mod append;
mod cells;
mod connect;
mod database;
mod diagnosis;
mod store;

pub use store::PostgresStore;
