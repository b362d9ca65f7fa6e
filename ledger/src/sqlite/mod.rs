//! The store in a SQLite file: the default, which needs no server.

mod append;
mod database;
mod store;

pub use store::SqliteStore;
