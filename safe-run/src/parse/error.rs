//! Errors from reading a record.

use std::io;

use camino::Utf8PathBuf;

/// A record that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file could not be read.
    #[error("failed to read `{path}`")]
    Read {
        /// The file.
        path: Utf8PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The file is not a complete and consistent record.
    #[error("`{path}`, line {line}: {error}")]
    Invalid {
        /// The file.
        path: Utf8PathBuf,
        /// The line, counted from 1.
        line: usize,
        error: LineError,
    },
}

/// An error in one line of a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// The file ends without a ledger: it is not a log, or it is a log of the merged view.
    #[error("the file ends without a ledger of events")]
    NoLedger,
    /// A line of the ledger is not an event.
    #[error("not an event")]
    NotAnEvent,
    /// A line of JSON is not an event.
    #[error("not an event: {0}")]
    Json(String),
    /// A required field of an event is missing.
    #[error("the {event} has no field `{field}`")]
    MissingField { event: &'static str, field: &'static str },
    /// A field has the wrong type or an unknown value.
    #[error("invalid field `{field}`: {reason}")]
    InvalidField {
        field: &'static str,
        /// Why the value is invalid.
        reason: String,
    },
    /// A field of the start or exit event is present in another event.
    #[error("the field `{0}` is not allowed in this event")]
    MisplacedField(&'static str),
    /// Two fields of an event contradict each other.
    #[error("the fields `{0}` and `{1}` contradict each other")]
    Contradiction(&'static str, &'static str),
    /// The sequence numbers have a gap or a duplicate.
    #[error("expected event {expected}, found event {found}")]
    SequenceNumber {
        /// The number that follows the previous event.
        expected: u64,
        /// The number in the line.
        found: u64,
    },
    /// The first event is not the start of the command.
    #[error("the first event is not the start of the command")]
    NoStart,
    /// The last event is not the exit of the command.
    #[error("the record ends before the exit of the command")]
    NoExit,
    /// There is text after the end of the record.
    #[error("there is text after the end of the record")]
    TrailingText,
    /// The text of an event is marked as base64 and is not valid base64.
    #[error("the text is not valid base64")]
    Base64,
    /// A line of a section differs from the ledger.
    #[error("the section differs from the ledger")]
    SectionMismatch,
}

/// A line, counted from 1, and its error.
pub(super) type ErrorAtLine = (usize, LineError);
