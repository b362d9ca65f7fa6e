//! The response of an agent while it is received, over HTTP or from a program: in memory, or in a redacted file.

mod body_sink;
mod exchange;
mod text_check;

pub(crate) use body_sink::{BodyBytes, BodyDestination, BodySink, Extent, SinkFull, SinkLimits};
pub(crate) use exchange::{AgentResponse, Exchange, ProgramEnd, ReceivedBody};
