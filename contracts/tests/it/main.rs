//! Integration tests of the contracts crate.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that panics has failed")]

mod control_room;
mod documents;
mod graph;
mod kit;
mod processes;
mod store;
mod store_file;
