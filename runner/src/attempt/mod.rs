//! One attempt at a case: one request over a transport, and one exchange as the outcome.

mod finished_attempt;
mod transport;

pub(crate) use finished_attempt::{AttemptContext, FinishedAttempt};
pub(crate) use transport::Transport;
