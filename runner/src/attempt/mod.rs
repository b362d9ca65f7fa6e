//! One attempt at a case: one request over a transport, and one response or fault.

pub(crate) mod execute;
pub(crate) mod transport;
