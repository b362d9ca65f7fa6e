//! The whole run of a coding agent: its model calls, tool calls, commands and file changes.
//!
//! ```text
//! agent ─▶ proxy, working tree ─┐
//! transcripts ─▶ import ────────┼▶ records ─▶ store: tables of the ledger ─▶ queries ─▶ export
//! guard ─▶ ledger ──────────────┘
//! ```
//!
//! A session is a run of the ledger: its id is the `run_id`.

pub mod event;
pub mod format;
pub mod import;
pub mod message;
pub mod milestone;
pub mod observe;
pub mod protocol;
pub mod proxy;
pub mod recorder;
pub mod recording;
pub mod session;
pub mod shell;
pub mod store;
pub mod summary;
