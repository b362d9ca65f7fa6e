//! An I/O error that can be reported more than once.

use std::io;

/// The parts of an [`io::Error`] (which cannot be cloned) that are needed to report it again.
#[derive(Debug, Clone)]
pub(crate) struct RepeatableError {
    kind: io::ErrorKind,
    os_code: Option<i32>,
    /// For errors that are not the operating system's own.
    message: String,
}

impl From<&io::Error> for RepeatableError {
    fn from(error: &io::Error) -> Self {
        Self { kind: error.kind(), os_code: error.raw_os_error(), message: error.to_string() }
    }
}

impl From<&RepeatableError> for io::Error {
    fn from(error: &RepeatableError) -> Self {
        match error.os_code {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::new(error.kind, error.message.clone()),
        }
    }
}
