//! What an agent sent, independent of the transport: `http` and `process` read the bytes, this module bounds and stores them,
//! in memory or in a redacted file. Nothing here reads from a connection or a pipe.

mod body_sink;
mod exchange;
mod file_shortage;
mod text_check;

pub(crate) use body_sink::{BodyBytes, BodyDestination, BodySink, Extent, SinkFull, SinkLimits};
pub(crate) use exchange::{AgentResponse, Exchange, ProgramEnd, ReceivedBody};
pub(crate) use file_shortage::is_file_shortage;
