//! The agent as an HTTP server: sends requests, reads and decodes response bodies, and classifies errors. Everything here knows
//! HTTP; what it reads goes to `received`.

mod client;
mod client_setup;
mod connect_error;
mod decode;
mod proxy;
mod read_body;
mod reused_connections;
mod send_request;
mod tls_fault;

pub use client::ClientError;
pub(crate) use client::{AgentClient, Connection};
