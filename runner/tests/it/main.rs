//! The runner against real sockets: every way in which an agent or the network can fail, and what lies on disk afterwards.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod answers;
mod bodies;
mod endings;
mod faults;
mod http;
mod kit;
mod network;
mod pacing;
mod planted;
#[cfg(unix)]
mod programs;
mod protocols;
mod secrets;
mod timeouts;
