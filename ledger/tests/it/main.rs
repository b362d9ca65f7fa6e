//! Tests of the crate through its interface: files, processes and databases are real.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that panics has failed")]

mod kit;
mod recorder;
