//! Shortens a record, so that what is stored of a command is bounded.

use std::io::{self, Read as _};

use memchr::memchr_iter;

use super::Record;
use crate::capture::Capture;

/// What a line counts besides its bytes: about as many as its event in JSON and its line in the ledger have besides its text.
const LINE_COST: u64 = 128;

impl Record {
    /// Keeps the first output, up to `limit` bytes, where a line counts 128 bytes more. A record that was cut states so as its
    /// error. Returns the record and what it counts.
    pub fn cut(self, limit: u64) -> io::Result<(Self, u64)> {
        let (mut capture, mut used, mut kept) = (Capture::default(), 0, 0);
        let total: u64 = crate::capture::Stream::ALL.iter().map(|stream| self.capture.bytes(*stream).len()).sum();
        let mut from = [0; 2];
        'chunks: for chunk in self.capture.chunks() {
            let chunk = chunk?;
            let at = &mut from[chunk.stream as usize];
            let mut bytes = Vec::new();
            self.capture.bytes(chunk.stream).reader(*at).take(chunk.length).read_to_end(&mut bytes)?;
            *at += chunk.length;
            let fitting = fitting(&bytes, limit - used);
            capture.push(chunk.stream, chunk.at, &bytes[..fitting])?;
            used += cost(&bytes[..fitting]);
            kept += fitting as u64;
            if fitting < bytes.len() {
                break 'chunks;
            }
        }
        if kept == total {
            return Ok((self, used));
        }
        let reason = format!("{} of {total} bytes of output are left out", total - kept);
        let capture_error = Some(self.capture_error.unwrap_or_else(|| io::Error::other(reason)));
        Ok((Self { capture_error, capture, ..self }, used))
    }
}

fn cost(bytes: &[u8]) -> u64 {
    bytes.len() as u64 + LINE_COST * memchr_iter(b'\n', bytes).count() as u64
}

/// Returns how many of the first bytes fit into a limit.
fn fitting(bytes: &[u8], limit: u64) -> usize {
    if cost(bytes) <= limit {
        return bytes.len();
    }
    let (mut used, mut start) = (0, 0);
    for newline in memchr_iter(b'\n', bytes) {
        let line = (newline + 1 - start) as u64 + LINE_COST;
        if used + line > limit {
            break;
        }
        used += line;
        start = newline + 1;
    }
    // A part of the next line, which may be the whole output.
    let rest = usize::try_from(limit - used).unwrap_or(usize::MAX);
    let line = memchr_iter(b'\n', &bytes[start..]).next().unwrap_or(bytes.len() - start);
    start + rest.min(line)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::capture::Stream;
    use crate::record::{Ending, LogView};

    fn record(chunks: &[(bool, Vec<u8>)]) -> Record {
        let mut capture = Capture::default();
        for (is_error, bytes) in chunks {
            let stream = if *is_error { Stream::Stderr } else { Stream::Stdout };
            capture.push(stream, Duration::ZERO, bytes).unwrap();
        }
        Record {
            command: vec!["x".into()],
            started_at: jiff::Timestamp::UNIX_EPOCH,
            elapsed: Duration::ZERO,
            ending: Ending::Exited(0),
            aborted_by: None,
            stopped: None,
            left_behind: 0,
            capture_error: None,
            output_errors: Vec::new(),
            capture,
        }
    }

    #[test]
    fn many_short_lines_and_one_long_line_are_cut() {
        for (bytes, limit, kept) in [
            (b"\n".repeat(1000), 1290, 10),
            (b"y\n".repeat(1000), 1300, 20),
            (b"x".repeat(1000), 300, 300),
            ([b"ab\n".to_vec(), b"x".repeat(1000)].concat(), 134, 6),
        ] {
            let (cut, used) = record(&[(false, bytes)]).cut(limit).unwrap();
            assert_eq!(cut.head(Stream::Stdout, 5000).unwrap().bytes.len(), kept);
            assert!(used <= limit && cut.capture_error.unwrap().to_string().contains("bytes of output are left out"));
        }
    }

    #[test]
    fn short_lines_take_no_more_on_disk_than_they_count() {
        for line in [&b"\n"[..], b"y\n"] {
            let (cut, used) = record(&[(false, line.repeat(100_000))]).cut(1 << 20).unwrap();
            let mut written = Vec::new();
            cut.write_json_lines(&mut written).unwrap();
            cut.write_log(LogView::Ledger, &mut written).unwrap();
            let (size, used) = (written.len() as u64, used);
            assert!(size <= used, "{size} bytes on disk, and {used} counted");
        }
    }

    proptest! {
        #[test]
        fn a_cut_keeps_a_prefix_within_its_limit(
            chunks in prop::collection::vec((any::<bool>(), prop::collection::vec(prop::sample::select(b"ab\n".to_vec()), 0..40)), 0..12),
            limit in 0_u64..4000,
        ) {
            let whole: u64 = chunks.iter().map(|(_, bytes)| cost(bytes)).sum();
            let before = record(&chunks);
            let heads = Stream::ALL.map(|stream| before.head(stream, 10_000).unwrap().bytes);
            let (cut, used) = before.cut(limit).unwrap();
            prop_assert!(used <= limit);
            prop_assert_eq!(cut.capture_error.is_none(), whole <= limit);
            for (stream, head) in Stream::ALL.into_iter().zip(heads) {
                prop_assert!(head.starts_with(&cut.head(stream, 10_000).unwrap().bytes));
            }
        }
    }
}
