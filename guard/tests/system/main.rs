//! Tests of the parts that touch the system, through the public API: real commands, processes and files.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod importer;
mod kit;
mod secrets;
