//! Test commands and the forges with real processes, git repositories and sockets.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that panics has failed")]

mod bundles;
mod github;
mod kit;
mod local_forge;
mod suite;
