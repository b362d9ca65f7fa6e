//! An append-only file of lines, such as JSON Lines, that several processes write and that survives crashes.
//!
//! A writer locks the file itself, appends whole lines with one write, and syncs them before it reports success. After a crash
//! in the middle of a write, the last line is torn: it has no newline. The next writer completes or moves it away
//! ([`Repair`]); readers skip it.

mod error;
mod log_state;
mod reader;
mod repair;
mod writer;

use camino::{Utf8Path, Utf8PathBuf};

pub use error::LogError;
pub use log_state::LogState;
pub use reader::{Line, LineReader};
pub use repair::Repair;
pub use writer::{LineWriter, LockOptions};

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
