//! One run of one server: decides about each call and emits the events of the run. Does not depend on a protocol.

mod call_result;
mod event_sink;
mod incoming_call;
mod open_calls;
mod preview;
mod problem;
mod run_session;
#[cfg(test)]
pub(crate) mod tests;

pub use call_result::{CallResult, ResultBytes};
pub use event_sink::{EventSink, SinkError};
pub use incoming_call::{IncomingArgs, IncomingCall, Retry};
pub use preview::{MAX_PREVIEW_BYTES, TRUNCATED};
pub use problem::Problem;
pub use run_session::{OpenCallsEnd, Refusal, Session, SessionOptions, Verdict};

/// Largest message in bytes that is inspected as a whole. Larger ones are forwarded and hashed as streams.
pub const MAX_INSPECT_BYTES: usize = 1 << 20;
