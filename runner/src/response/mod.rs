//! The response of an agent while it is received: in memory, or in an unnamed file.

pub(crate) mod body_sink;
