//! Errors of a log.

use std::io;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use super::MAX_LINE_BYTES;

/// A log that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file cannot be read.
    #[error("failed to read `{path}`")]
    Read {
        /// The file.
        path: Utf8PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file cannot be written.
    #[error("failed to write `{path}`")]
    Write {
        /// The file.
        path: Utf8PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Another process holds the lock for too long.
    #[error("`{path}` is locked by another process; waited {} s", waited.as_secs())]
    Locked {
        /// The file.
        path: Utf8PathBuf,
        /// The time that the caller allowed.
        waited: Duration,
    },
    /// The file system has no working locks.
    #[error("`{path}` cannot be locked: its file system has no working file locks")]
    NoLocks {
        /// The file.
        path: Utf8PathBuf,
    },
    /// A line that was to be added is longer than [`MAX_LINE_BYTES`].
    #[error("a line of {bytes} bytes cannot be added to `{path}`: a line has at most {MAX_LINE_BYTES} bytes")]
    NewLineTooLong {
        /// The file.
        path: Utf8PathBuf,
        /// The length of the line.
        bytes: u64,
    },
    /// The file has a line that is longer than [`MAX_LINE_BYTES`].
    #[error("`{path}` has a line of more than {MAX_LINE_BYTES} bytes at byte {offset}")]
    TooLong {
        /// The file.
        path: Utf8PathBuf,
        /// The offset of the line.
        offset: u64,
    },
}

impl LogError {
    pub(super) fn read(path: &Utf8Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| LogError::Read { path, source }
    }

    pub(super) fn write(path: &Utf8Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| LogError::Write { path, source }
    }
}
