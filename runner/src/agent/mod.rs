//! How a case becomes a request and a response becomes an artifact: one file for each protocol.

pub(crate) mod native;
