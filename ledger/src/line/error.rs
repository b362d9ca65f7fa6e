//! Lines that are not events.

use super::texts::MAX_ID_BYTES;

/// A line that is not an event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// Bytes that are not text.
    #[error("not UTF-8: invalid byte at column {column}")]
    NotText {
        /// The column, counted from 1.
        column: usize,
    },
    /// Text that is not a JSON object with the fields that identify an event.
    #[error("{message} at column {column}")]
    NotAnEvent {
        /// What is wrong.
        message: String,
        /// The column, counted from 1.
        column: usize,
    },
    /// A field that is not a time.
    #[error("field `{field}`: `{value}` is not an RFC 3339 time")]
    Time { field: &'static str, value: String },
    /// A time that is later or earlier than the ledger can store.
    #[error("field `{field}`: the time `{value}` is out of range; the latest one is {}", jiff::Timestamp::MAX)]
    TimeRange { field: &'static str, value: String },
    /// An id that is empty or too long.
    #[error("field `{field}`: it must have 1 to {MAX_ID_BYTES} bytes and no NUL character")]
    Id { field: &'static str },
}
