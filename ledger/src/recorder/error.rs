//! Errors of a recorder.

use camino::Utf8PathBuf;

use crate::spool::SpoolError;

/// A recorder that cannot start, or an event that cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The spool file cannot be created or written.
    #[error("failed to record the event")]
    Spool(#[from] SpoolError),
    /// The file of events cannot be created or written.
    #[error("failed to write the event to `{path}`")]
    EventsFile {
        /// The file.
        path: Utf8PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// An id of the run or the shim that cannot be a key.
    #[error("`{field}` must have 1 to 256 bytes and no NUL character")]
    Id { field: &'static str },
    /// The event has no JSON form.
    #[error("failed to serialise the event")]
    Serialise(#[from] serde_json::Error),
    /// The end of the run is recorded already, or the recorder has finished.
    #[error("the run has ended; no event is recorded after its end")]
    Ended,
    /// The thread that moves events to the store cannot start.
    #[error("failed to start a thread")]
    Thread(#[source] std::io::Error),
}
