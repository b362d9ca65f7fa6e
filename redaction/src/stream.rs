//! Redaction of a byte stream: finds secrets across chunk boundaries, in bounded memory.

use counterproof_json_text::EscapeCursor;

use crate::redactor::{Applied, Content, End, Redactor};
use crate::search::Search;

/// Smallest number of bytes held back. Keys of known patterns are shorter, except hostile ones.
const HELD: usize = 16 * 1024;

/// Smallest block to search, in bytes. Without it, single-byte chunks would cause one search per byte.
const BLOCK: usize = 64 * 1024;

#[derive(Debug)]
pub struct RedactingStream {
    redactor: Redactor,
    content: Content,
    /// Bytes received and not yet returned. In a JSON string, they do not start within an escape.
    waiting: Vec<u8>,
    held: usize,
    /// True inside a key that is longer than the buffer: its mask is already returned, and the rest of the key is dropped.
    dropping: bool,
    applied: Applied,
}

impl RedactingStream {
    /// Starts a stream.
    pub fn new(redactor: Redactor) -> Self {
        Self::with_content(redactor, Content::Text)
    }

    /// Starts the content of a JSON string, of which only whole escapes are masked.
    pub(crate) fn for_json_string(redactor: Redactor) -> Self {
        Self::with_content(redactor, Content::JsonString)
    }

    fn with_content(redactor: Redactor, content: Content) -> Self {
        // A value is found only if all of it is in the buffer.
        let held = HELD.max(redactor.longest());
        Self { redactor, content, waiting: Vec::new(), held, dropping: false, applied: Applied::default() }
    }

    /// Adds a chunk. Returns the bytes that are safe to output, often none.
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.waiting.extend_from_slice(piece);
        // The size of the blocks does not depend on the chunks, so neither does the cost.
        if self.waiting.len() < self.held + BLOCK {
            return Vec::new();
        }
        // A secret that starts before this place ends within the buffer; one that starts later may be incomplete.
        self.take(self.waiting.len().saturating_sub(self.held))
    }

    /// Returns the waiting bytes, except those at the end that may be the beginning of a configured value. For output that must
    /// not wait for more. Keys of known formats are found only within the bytes that wait together.
    pub fn flush(&mut self) -> Vec<u8> {
        self.take(self.redactor.open_value(&self.waiting))
    }

    /// Ends the stream. Returns the remaining bytes, and the rules that were applied.
    pub fn finish(self) -> (Vec<u8>, Applied) {
        self.end(End::Complete)
    }

    /// Ends a truncated stream; see [`Redactor::truncated_bytes`].
    pub fn finish_truncated(self) -> (Vec<u8>, Applied) {
        self.end(End::Truncated)
    }

    fn end(mut self, end: End) -> (Vec<u8>, Applied) {
        let dropped = self.drop_rest_of_key();
        let mut rest = Vec::new();
        self.redactor.push_line_breaks(&self.waiting[..dropped], &mut rest);
        rest.extend_from_slice(&self.redactor.mask(&self.waiting[dropped..], end, self.content, &mut self.applied));
        (rest, self.applied)
    }

    /// Number of buffered bytes that belong to a key whose mask is already returned.
    fn drop_rest_of_key(&mut self) -> usize {
        if !self.dropping {
            return 0;
        }
        let dropped = self.waiting.iter().position(|byte| !is_of_key(*byte)).unwrap_or(self.waiting.len());
        self.dropping = dropped == self.waiting.len();
        self.boundary(0, dropped)
    }

    /// Returns a place, or the start of the escape around it. `start` is not within an escape.
    fn boundary(&self, start: usize, place: usize) -> usize {
        match self.content {
            Content::Text => place,
            Content::JsonString => EscapeCursor::new(&self.waiting, start).start(place),
        }
    }

    /// Returns the masked bytes up to a place, or up to the secret around it.
    fn take(&mut self, safe: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.waiting.len());
        let mut done = self.drop_rest_of_key();
        self.redactor.push_line_breaks(&self.waiting[..done], &mut out);
        let length = self.waiting.len();
        let mut safe = self.boundary(done, safe.max(done));
        let redactor = &self.redactor;
        let mut search = Search::new(redactor, &self.waiting, self.content);
        while let Some(found) = search.next(done) {
            if found.range.start >= safe {
                break;
            }
            // A key at the end may continue in the next chunk.
            if found.range.end == length {
                if length - found.range.start <= self.held {
                    safe = safe.min(found.range.start);
                    break;
                }
                self.dropping = true;
            }
            out.extend_from_slice(&self.waiting[done..found.range.start]);
            if self.dropping {
                redactor.mask_bytes(&self.waiting[found.range.clone()], &mut out);
            }
            // Called for its entry in `applied` even if the mask is already written.
            let mut masked = Vec::new();
            redactor.mask_one(&self.waiting, &found, &mut masked, &mut self.applied);
            if !self.dropping {
                out.append(&mut masked);
            }
            // The end of the buffer may be within an escape of the key.
            done = self.boundary(found.range.start, found.range.end);
            safe = safe.max(done);
        }
        out.extend_from_slice(&self.waiting[done..safe]);
        self.waiting.drain(..safe);
        out
    }
}

/// True for bytes that can be part of a key, including the line breaks of armoured keys.
fn is_of_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=_.~-\\ \r\n".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_of_masked_keys_are_preserved() {
        let key = format!("-----BEGIN PRIVATE KEY-----\n{}-----END PRIVATE KEY-----", "MIIEvQ\n".repeat(20_000));
        let text = format!("one\n{key}\n\"last\"\n");
        for size in [7, 100_000, text.len()] {
            let mut stream = RedactingStream::new(Redactor::new([]).unwrap().with_line_breaks());
            let mut out: Vec<u8> = text.as_bytes().chunks(size).flat_map(|piece| stream.push(piece)).collect();
            out.extend(stream.finish().0);
            let out = String::from_utf8(out).unwrap();
            assert_eq!(out.lines().count(), text.lines().count(), "{size}");
            assert!(out.starts_with("one\n[redacted]\n") && out.ends_with("\n\"last\"\n") && !out.contains("MIIE"));
        }
    }

    #[test]
    fn a_flush_returns_all_but_the_beginning_of_a_value() {
        let redactor = Redactor::of_values(["hunter2-is-long"]).unwrap();
        let mut stream = RedactingStream::new(redactor);
        let mut flushed = |piece: &str| {
            let mut out = stream.push(piece.as_bytes());
            out.extend(stream.flush());
            String::from_utf8(out).unwrap()
        };
        assert_eq!(flushed("ready\n"), "ready\n");
        assert_eq!(flushed("a hunter"), "a");
        assert_eq!(flushed("2-is-lo"), "");
        assert_eq!(flushed("ng.\n"), " [redacted].\n");
    }

    #[test]
    fn a_value_in_pieces_that_are_flushed_never_gets_out() {
        let value = "hunter2-is-long";
        let base64 = "aHVudGVyMi1pcy1sb25n";
        for (text, secret) in [(format!("x {value} y\n"), value), (format!("x={base64}&y\n"), base64)] {
            for size in 1..text.len() {
                let mut stream = RedactingStream::new(Redactor::of_values([value]).unwrap());
                let mut out = Vec::new();
                for piece in text.as_bytes().chunks(size) {
                    out.extend(stream.push(piece));
                    out.extend(stream.flush());
                }
                out.extend(stream.finish().0);
                let out = String::from_utf8(out).unwrap();
                let longest = (0..secret.len()).filter(|end| out.contains(&secret[..*end])).max();
                assert!(longest.is_some_and(|longest| longest <= 1), "{size}: {out:?}");
            }
        }
    }

    #[test]
    fn a_key_longer_than_the_buffer_is_dropped_to_its_end() {
        let mut stream = RedactingStream::new(Redactor::new([]).unwrap());
        let mut out = stream.push(b"before sk-");
        for _ in 0..100 {
            out.extend(stream.push(&[b'a'; 4096]));
            assert!(stream.waiting.len() <= BLOCK + HELD + 4096);
        }
        out.extend(stream.push(b"\" after"));
        let (rest, applied) = stream.finish();
        out.extend(rest);
        assert_eq!(String::from_utf8(out).unwrap(), "before[redacted]\" after");
        assert_eq!(applied.names(), ["secret_key"]);
    }
}
