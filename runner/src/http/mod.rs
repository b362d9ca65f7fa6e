//! The agent as an HTTP server: client, exchange, body reading, content encodings and the classification of errors.

mod body;
mod client;
mod connect_error;
mod decode;
mod exchange;

pub(crate) use client::AgentClient;
pub use client::ClientError;
