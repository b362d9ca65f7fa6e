//! The runner against real sockets: failures of agents and networks, and the files on disk afterwards.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod answers;
mod bodies;
mod endings;
mod http;
mod http_agents;
mod kept_connections;
mod kit;
mod network;
mod pacing;
#[cfg(unix)]
mod persistent;
mod planted;
#[cfg(unix)]
mod programs;
mod protocols;
mod secrets;
#[cfg(unix)]
mod service;
mod timeouts;
mod tool_loops;
