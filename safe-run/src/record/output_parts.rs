//! Parts of a command's output: the start of a stream, and its last lines.

use std::io;

use memchr::memrchr_iter;

use super::Record;
use crate::capture::Stream;

/// The most that [`Record::tail`] returns of one stream, in bytes.
const LIMIT: u64 = 64 * 1024;

/// The start of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputHead {
    /// The bytes, at most as many as requested.
    pub bytes: Vec<u8>,
    /// True if the stream has more bytes.
    pub is_cut: bool,
}

impl Record {
    /// Returns the first bytes of a stream, at most `limit`.
    pub fn head(&self, stream: Stream, limit: u64) -> io::Result<OutputHead> {
        let captured = self.capture.bytes(stream);
        let mut bytes = Vec::new();
        captured.copy(0, captured.len().min(limit), &mut bytes)?;
        Ok(OutputHead { bytes, is_cut: captured.len() > limit })
    }

    /// Returns the last `lines` lines of a stream, at most 64 KiB.
    pub fn tail(&self, stream: Stream, lines: usize) -> io::Result<Vec<u8>> {
        let bytes = self.capture.bytes(stream);
        let from = bytes.len().saturating_sub(LIMIT);
        let mut end = Vec::new();
        bytes.copy(from, bytes.len(), &mut end)?;
        // The newline that ends the last line does not begin another one.
        let last = end.len().saturating_sub(1);
        let before = memrchr_iter(b'\n', &end[..last]).nth(lines.saturating_sub(1));
        Ok(if lines == 0 { Vec::new() } else { end.split_off(before.map_or(0, |newline| newline + 1)) })
    }
}
