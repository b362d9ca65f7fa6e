//! One run of one server: decides about each call and emits the events of the run. Does not depend on a protocol.

mod call;
mod decider;
mod run_session;
#[cfg(test)]
pub(crate) mod tests;

pub use call::{CallResult, IncomingArgs, IncomingCall, MAX_PREVIEW_BYTES, Refusal, ResultBytes, Retry, TRUNCATED};
pub use decider::RunMembership;
pub use run_session::{Admission, EventSink, OpenCallsEnd, Problem, Session, SessionOptions, SinkError};

/// Largest message in bytes that is inspected as a whole. Larger ones are forwarded and hashed as streams.
pub const MAX_INSPECT_BYTES: usize = 1 << 20;
