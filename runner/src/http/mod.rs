//! The agent as an HTTP server: the client, reading of response bodies and content encodings.

pub(crate) mod body;
pub(crate) mod client;
pub(crate) mod decode;
