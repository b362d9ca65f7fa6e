//! Tests of the crate through its interface, with real databases.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that panics has failed")]

/// The server of the tests of the ledger.
#[cfg(unix)]
#[path = "../../../ledger/tests/it/server.rs"]
#[allow(dead_code, reason = "only the ledger tests connections with TLS")]
mod server;
mod store;
