//! Errors from reading a record.

use std::io;

use camino::Utf8PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("failed to read `{path}`")]
    Read { path: Utf8PathBuf, source: io::Error },
    #[error("`{path}`, line {line}: {error}")]
    Invalid {
        path: Utf8PathBuf,
        /// The line, counted from 1.
        line: usize,
        error: LineError,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// The file ends without a ledger: it is not a log, or it is a log of the merged view.
    #[error("the file ends without a ledger of events")]
    NoLedger,
    #[error("not an event")]
    NotAnEvent,
    #[error("not an event: {0}")]
    Json(String),
    #[error("the {event} has no field `{field}`")]
    MissingField { event: &'static str, field: &'static str },
    #[error("invalid field `{field}`: {reason}")]
    InvalidField { field: &'static str, reason: String },
    /// A field of the start or exit event is present in another event.
    #[error("the field `{0}` is not allowed in this event")]
    MisplacedField(&'static str),
    #[error("the fields `{0}` and `{1}` contradict each other")]
    Contradiction(&'static str, &'static str),
    #[error("expected event {expected}, found event {found}")]
    SequenceNumber { expected: u64, found: u64 },
    #[error("the first event is not the start of the command")]
    NoStart,
    #[error("the record ends before the exit of the command")]
    NoExit,
    #[error("there is text after the end of the record")]
    TrailingText,
    #[error("the text is not valid base64")]
    Base64,
    #[error("the section differs from the ledger")]
    SectionMismatch,
}

/// A line, counted from 1, and its error.
pub(super) type ErrorAtLine = (usize, LineError);
