//! An append-only file of lines, such as JSON Lines, that several processes write and that survives crashes.
//!
//! A writer locks the file itself, appends whole lines with one write, and syncs them before it reports success. After a crash
//! in the middle of a write, the last line is torn: it has no newline. The next writer completes or moves it away
//! ([`Repair`]); readers skip it.

use std::io;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

pub use reader::{Line, LineReader, LogState};
pub use writer::{LineWriter, LockOptions, Repair};

mod reader;
mod writer;

/// Longest line in bytes, without its newline.
pub const MAX_LINE_BYTES: u64 = 16 << 20;

/// An append-only file of lines.
#[derive(Debug, Clone)]
pub struct LineLog {
    path: Utf8PathBuf,
}

impl LineLog {
    /// Names a log. The file is created by the first writer.
    pub fn new(path: impl Into<Utf8PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// Opens the log for reading from a byte offset, which is the start of a line. Returns `None` if the file does not exist.
    pub fn read_from(&self, offset: u64) -> Result<Option<LineReader>, LogError> {
        LineReader::open(&self.path, offset)
    }

    /// Locks the log for writing, creates it where it does not exist, and repairs a torn last line.
    ///
    /// `is_whole` decides whether a last line without a newline is complete.
    pub fn lock(&self, options: &LockOptions, is_whole: impl Fn(&[u8]) -> bool) -> Result<LineWriter, LogError> {
        LineWriter::lock(&self.path, options, &is_whole)
    }

    /// Locks a log that a process has left behind, and repairs a torn last line. Returns `None` if the file does not exist or a
    /// living process has locked it.
    pub fn take_over(&self, is_whole: impl Fn(&[u8]) -> bool) -> Result<Option<LineWriter>, LogError> {
        LineWriter::take_over(&self.path, &is_whole)
    }

    /// Returns true if a living process has locked the log.
    pub fn is_locked(&self) -> bool {
        writer::is_locked(&self.path)
    }
}

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
    fn read(path: &Utf8Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| LogError::Read { path, source }
    }

    fn write(path: &Utf8Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| LogError::Write { path, source }
    }
}
