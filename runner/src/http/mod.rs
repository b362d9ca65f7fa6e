//! The agent as an HTTP server: sends requests, reads and decodes response bodies, and classifies errors. Everything
//! here knows HTTP; what it reads goes to `body_sink`.

mod client;
mod client_setup;
mod connect_error;
mod read_body;

pub use client::ClientError;
pub(crate) use client::{AgentClient, Connection};
pub(crate) use client_setup::{loopback_addresses, probe_client};
