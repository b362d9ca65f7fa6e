//! The last lines of what a command printed.

use std::io;

use memchr::memrchr_iter;

use super::Record;
use crate::capture::Stream;

/// The most that is shown of one stream, in bytes.
const SHOWN: u64 = 64 * 1024;

impl Record {
    /// The last lines of a stream as they came, of a long stream no more than 64 KiB.
    pub fn tail(&self, stream: Stream, lines: usize) -> io::Result<Vec<u8>> {
        let spool = self.tape.spool(stream);
        let from = spool.len().saturating_sub(SHOWN);
        let mut end = Vec::new();
        spool.copy(from, spool.len(), &mut end)?;
        // The newline of the last line begins no line.
        let last = end.len().saturating_sub(1);
        let before = memrchr_iter(b'\n', &end[..last]).nth(lines.saturating_sub(1));
        Ok(if lines == 0 { Vec::new() } else { end.split_off(before.map_or(0, |newline| newline + 1)) })
    }
}
