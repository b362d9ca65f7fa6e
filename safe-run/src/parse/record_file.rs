//! A record as it is read from a file.

use std::time::Duration;

use camino::Utf8Path;
use counterproof_store::read_file;
use jiff::Timestamp;

use super::assemble::assemble;
use super::error::{ErrorAtLine, ReadError};
use super::event::EndDetails;
use super::{json_lines, log};

/// The content of a log or of a file of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedRecord {
    /// The format of the file.
    pub format: RecordFormat,
    /// The command as one line for `sh`.
    pub command: String,
    /// The start time and the elapsed time; `None` for a log, which has no times.
    pub times: Option<(Timestamp, Duration)>,
    /// The exit code of safe-run.
    pub exit_code: i32,
    /// Further facts about the end; empty for a log.
    pub end: EndDetails,
    /// The lines of standard output without their line ends, as the ledger has them: text, or `base64:` and the bytes.
    pub stdout: Vec<String>,
    /// The lines of standard error, in the same form.
    pub stderr: Vec<String>,
    /// Messages of the recorder between the start and the exit, such as that the record is incomplete.
    pub notes: Vec<String>,
}

/// The format of a record file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordFormat {
    /// A log with a ledger.
    Log,
    /// The events as JSON lines.
    JsonLines,
}

impl ParsedRecord {
    /// Reads a log with a ledger, or a file of events. The whole file is held in memory.
    pub fn read(path: &Utf8Path) -> Result<Self, ReadError> {
        Self::read_with_bytes(path).map(|(record, _)| record)
    }

    /// Reads a record and returns the bytes of the file too, because a pipe can be read only once.
    pub fn read_with_bytes(path: &Utf8Path) -> Result<(Self, Vec<u8>), ReadError> {
        let bytes = read_file::read_argument(path, read_file::MAX_LARGE_BYTES)
            .map_err(|source| ReadError::Read { path: path.to_owned(), source })?;
        let record = Self::parse(&bytes);
        let record = record.map_err(|(line, error)| ReadError::Invalid { path: path.to_owned(), line, error })?;
        Ok((record, bytes))
    }

    pub(super) fn parse(bytes: &[u8]) -> Result<Self, ErrorAtLine> {
        // A log begins with the header of a section, so the first byte decides.
        if bytes.starts_with(b"{") {
            assemble(RecordFormat::JsonLines, json_lines::parse(bytes)?)
        } else {
            log::parse(bytes)
        }
    }
}
