//! Tests of the program as a user runs it: real commands, real signals, and the remaining processes counted in `/proc`.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod artifacts;
mod conformance;
mod events;
mod inherited;
mod kit;
mod large;
mod library;
mod processes;
mod record;
mod streams;
mod supervisor;
mod terminal;
