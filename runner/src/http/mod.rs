//! The agent as an HTTP server: sends requests, reads and decodes response bodies, and classifies errors. Everything here knows
//! HTTP; what it reads goes to `received`.

mod client;
mod connect_error;
mod decode;
mod read_body;
mod send_request;

pub(crate) use client::AgentClient;
pub use client::ClientError;
