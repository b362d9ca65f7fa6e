//! Tests of the crate through its interface: files, processes and databases are real.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that panics has failed")]

mod databases;
mod failures;
mod killed;
mod kit;
mod lost_spool;
mod recorder;
#[cfg(unix)]
mod server;
mod tables;
#[cfg(unix)]
mod tls;
