//! Tests of the parts that touch the system, through the public API: real commands, processes, files and repositories.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod git;
mod git_attacks;
mod kit;
mod process;
mod resources;
mod rollback;
mod snapshot;
mod verification;
