//! The last lines of a command's output.

use std::io;

use memchr::memrchr_iter;

use super::Record;
use crate::capture::Stream;

/// The most that is returned of one stream, in bytes.
const LIMIT: u64 = 64 * 1024;

impl Record {
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
