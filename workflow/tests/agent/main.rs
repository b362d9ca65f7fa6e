//! The parts of the agent, with real files, processes and sockets.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "files of a test need not survive a crash")]

mod files;
mod kit;
mod model;
mod sandbox;
mod shell;
