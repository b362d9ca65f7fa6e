//! Tests with real repositories: copies, snapshots, restores, and what goes to other repositories.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod import;
mod kit;
mod publish;
mod restore;
mod snapshot;
mod trees;
