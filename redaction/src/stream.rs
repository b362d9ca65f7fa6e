//! Redaction of bytes that come in pieces: a secret is found wherever the pieces are cut, in memory that does not grow.

use crate::redactor::{Applied, End, Redactor};

/// The least that is held back: keys of known shapes, but for hostile ones, are shorter.
const HELD: usize = 16 * 1024;

/// Work is done in blocks of at least this size, so that bytes which come one by one are not searched once for each.
const BLOCK: usize = 64 * 1024;

/// A redactor for one stream.
#[derive(Debug)]
pub struct RedactingStream {
    redactor: Redactor,
    /// What has come and not gone out yet.
    waiting: Vec<u8>,
    held: usize,
    /// True within a key that is longer than what may wait: the mask is out, the rest of the key is dropped.
    dropping: bool,
    applied: Applied,
}

impl RedactingStream {
    /// A new stream.
    pub fn new(redactor: Redactor) -> Self {
        let held = HELD.max(redactor.longest);
        Self { redactor, waiting: Vec::new(), held, dropping: false, applied: Applied::default() }
    }

    /// Takes the next piece; gives what can go out, often nothing.
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.waiting.extend_from_slice(piece);
        if self.waiting.len() < self.held + BLOCK { Vec::new() } else { self.take() }
    }

    /// Gives the rest, and the rules that were applied.
    pub fn finish(self) -> (Vec<u8>, Applied) {
        self.end(End::Whole)
    }

    /// The same for a stream whose end is missing; see [`Redactor::cut_bytes`].
    pub fn finish_cut(self) -> (Vec<u8>, Applied) {
        self.end(End::Cut)
    }

    fn end(mut self, end: End) -> (Vec<u8>, Applied) {
        let dropped = self.drop_rest_of_key();
        let mut rest = Vec::new();
        self.redactor.keep_lines(&self.waiting[..dropped], &mut rest);
        rest.extend_from_slice(&self.redactor.up_to(&self.waiting[dropped..], end, &mut self.applied));
        (rest, self.applied)
    }

    /// How much of what waits is the rest of a key whose mask is out.
    fn drop_rest_of_key(&mut self) -> usize {
        if !self.dropping {
            return 0;
        }
        let dropped = self.waiting.iter().position(|byte| !is_of_key(*byte)).unwrap_or(self.waiting.len());
        self.dropping = dropped == self.waiting.len();
        dropped
    }

    fn take(&mut self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.waiting.len());
        let mut done = self.drop_rest_of_key();
        self.redactor.keep_lines(&self.waiting[..done], &mut out);
        let length = self.waiting.len();
        let mut safe = length.saturating_sub(self.held).max(done);
        let redactor = &self.redactor;
        while let Some(found) = redactor.any.find_at(&self.waiting, done) {
            if found.start() >= safe {
                break;
            }
            // A key at the very end may go on in the next piece.
            if found.end() == length {
                if length - found.start() <= self.held {
                    safe = safe.min(found.start());
                    break;
                }
                self.dropping = true;
            }
            out.extend_from_slice(&self.waiting[done..found.start()]);
            if self.dropping {
                redactor.mask_bytes(found.as_bytes(), &mut out);
            }
            let mut masked = Vec::new();
            redactor.mask_one(found.as_bytes(), &mut masked, &mut self.applied);
            if !self.dropping {
                out.append(&mut masked);
            }
            done = found.end();
            safe = safe.max(done);
        }
        out.extend_from_slice(&self.waiting[done..safe]);
        self.waiting.drain(..safe);
        out
    }
}

/// What keys consist of, line breaks of armoured ones included.
fn is_of_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=_.~-\\ \r\n".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_kept_where_they_are_to_be() {
        let key = format!("-----BEGIN PRIVATE KEY-----\n{}-----END PRIVATE KEY-----", "MIIEvQ\n".repeat(20_000));
        let text = format!("one\n{key}\n\"last\"\n");
        for size in [7, 100_000, text.len()] {
            let mut stream = RedactingStream::new(Redactor::new([]).unwrap().keeping_lines());
            let mut out: Vec<u8> = text.as_bytes().chunks(size).flat_map(|piece| stream.push(piece)).collect();
            out.extend(stream.finish().0);
            let out = String::from_utf8(out).unwrap();
            assert_eq!(out.lines().count(), text.lines().count(), "{size}");
            assert!(out.starts_with("one\n[redacted]\n") && out.ends_with("\n\"last\"\n") && !out.contains("MIIE"));
        }
    }

    #[test]
    fn a_key_longer_than_all_memory_is_dropped_to_its_end() {
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
