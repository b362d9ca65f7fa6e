//! Tests of the crate through its interface, with real files and databases.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that panics has failed")]

mod continued;
mod import_claude_code;
mod import_codex;
mod import_docs;
mod import_hostile;
mod import_kit;
mod import_traces;
mod real_files;
/// The server of the tests of the ledger.
#[cfg(unix)]
#[path = "../../../ledger/tests/it/server.rs"]
#[allow(dead_code, reason = "only the ledger tests connections with TLS")]
mod server;
mod store;
