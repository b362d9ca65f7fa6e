//! Where the events of a session go.

use counterproof_ledger::event::EventBody;

/// Stores the events of one session, from several threads.
pub trait EventSink: Send + Sync {
    /// Stores an event. When this returns, the event is not lost if this process is killed.
    fn record(&self, body: EventBody) -> Result<(), SinkError>;
}

/// An event that could not be stored.
#[derive(Debug, thiserror::Error)]
#[error("failed to record an event: {message}")]
pub struct SinkError {
    /// The reason, with the file.
    pub message: String,
}
