//! The store in a SQLite file: the default, which needs no server.

mod append;
mod database;
mod diagnosis;
mod file_identity;
mod store;

pub use store::SqliteStore;
