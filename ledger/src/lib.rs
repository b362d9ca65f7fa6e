//! The ledger of tool-call events: the event format, the store, and the queries.
//!
//! ```text
//! recorder ─▶ spool file ─▶ drain ─▶ store: SQLite or PostgreSQL ─▶ queries
//!                             ▲
//! lines of other producers ───┘
//! ```
//!
//! [`event`] defines the events that the guard emits, one JSON object per line. A [`recorder`](recorder::Recorder) writes each event
//! to a spool file before it returns, and a thread moves the events to the store. This crate does not decide about calls;
//! `counterproof-guard` does.

pub mod doctor;
pub mod event;
pub mod line;
pub mod location;
pub mod postgres;
pub mod query;
pub mod recorder;
pub mod spool;
pub mod sqlite;
pub mod store;

mod open;
mod tables;

pub use open::{open, open_or_create};
