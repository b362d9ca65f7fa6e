//! Splits a byte stream into lines, in bounded memory, and finds carriage returns within them.

use std::io::{self, Read};

use crate::session::MAX_INSPECT_BYTES;

/// Bytes per read: the capacity of a pipe on Linux.
const READ_BYTES: usize = 64 * 1024;

/// A piece of a stream. Joined, the pieces are the stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A whole line with its newline, or the last line without one.
    Line(&'a [u8]),
    /// A part of a line that is longer than [`MAX_INSPECT_BYTES`], or that does not start as JSON does.
    Part(LinePart<'a>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinePart<'a> {
    pub bytes: &'a [u8],
    pub is_first: bool,
    pub is_last: bool,
}

#[derive(Debug)]
pub struct LineReader<R> {
    input: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The bytes after `start` that are known to have no newline.
    searched: usize,
    in_long_line: bool,
    limit: usize,
}

impl<R: Read> LineReader<R> {
    pub fn new(input: R) -> Self {
        Self::with_limit(input, MAX_INSPECT_BYTES)
    }

    /// Reads from `input`. Lines longer than `limit` bytes are returned in parts.
    pub fn with_limit(input: R, limit: usize) -> Self {
        Self { input, buffer: vec![0; READ_BYTES], start: 0, end: 0, searched: 0, in_long_line: false, limit }
    }

    /// Returns true if a whole line, or a part of a long one, can be returned without reading.
    pub fn has_next(&self) -> bool {
        let unread = &self.buffer[self.start..self.end];
        memchr::memchr(b'\n', &unread[self.searched..]).is_some() || self.in_long_line && !unread.is_empty()
    }

    /// Returns the next piece; `None` at the end of the stream.
    pub fn next_piece(&mut self) -> io::Result<Option<Piece<'_>>> {
        loop {
            let unread = self.end - self.start;
            let from = self.start + self.searched;
            let newline = memchr::memchr(b'\n', &self.buffer[from..self.end]).map(|at| from + at + 1);
            if let Some(line_end) = newline {
                let start = self.start;
                self.start = line_end;
                self.searched = 0;
                let bytes = &self.buffer[start..line_end];
                let is_first = !std::mem::take(&mut self.in_long_line);
                return Ok(Some(if is_first && bytes.len() <= self.limit {
                    Piece::Line(bytes)
                } else {
                    Piece::Part(LinePart { bytes, is_first, is_last: true })
                }));
            }
            // Bytes that were searched are not searched again: a long line would cost the square of its length.
            self.searched = unread;
            // A line beyond the limit is passed on in parts, and so is one that cannot be a message.
            if unread > self.limit || unread > 0 && (self.in_long_line || self.is_opaque()) {
                let is_first = !std::mem::replace(&mut self.in_long_line, true);
                let bytes = self.start..self.end;
                (self.start, self.searched) = (self.end, 0);
                return Ok(Some(Piece::Part(LinePart { bytes: &self.buffer[bytes], is_first, is_last: false })));
            }
            if self.fill()? == 0 {
                return Ok(self.last_piece());
            }
        }
    }

    /// True if the buffer cannot begin a message. Such bytes do not wait for a newline, which another framing may not
    /// have.
    fn is_opaque(&self) -> bool {
        let first = self.buffer[self.start..self.end].iter().find(|byte| !byte.is_ascii_whitespace());
        first.is_some_and(|byte| !matches!(byte, b'{' | b'['))
    }

    /// The rest of a stream that does not end with a newline.
    fn last_piece(&mut self) -> Option<Piece<'_>> {
        let bytes = self.start..self.end;
        (self.start, self.searched) = (self.end, 0);
        if std::mem::take(&mut self.in_long_line) {
            // The parts before were not the last one.
            return Some(Piece::Part(LinePart { bytes: &self.buffer[bytes], is_first: false, is_last: true }));
        }
        (!bytes.is_empty()).then(|| Piece::Line(&self.buffer[bytes]))
    }

    fn fill(&mut self) -> io::Result<usize> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            // A long line may have left a large buffer behind.
            if self.buffer.len() > 2 * READ_BYTES {
                self.buffer = vec![0; READ_BYTES];
            }
        } else if self.buffer.len() - self.end < READ_BYTES {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            if self.buffer.len() - self.end < READ_BYTES {
                // Doubled up to the limit, and not more: one long line must not leave a large buffer behind for all others.
                let larger = (2 * self.buffer.len()).min(self.limit + 2 * READ_BYTES).max(self.end + READ_BYTES);
                self.buffer.resize(larger, 0);
            }
        }
        loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(read) => {
                    self.end += read;
                    return Ok(read);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Looks for carriage returns in a line that comes in pieces.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct LineEnds {
    /// The last byte so far was a carriage return, which may belong to the end of the line.
    ends_with_return: bool,
    has_other: bool,
}

impl LineEnds {
    pub(super) fn push(&mut self, piece: &[u8]) {
        // An empty piece says nothing about what follows a carriage return.
        if piece.is_empty() {
            return;
        }
        // The newline after a carriage return may come in the next piece.
        self.has_other |= self.ends_with_return && piece != b"\n";
        let text = piece.strip_suffix(b"\n").unwrap_or(piece);
        let first = memchr::memchr(b'\r', text);
        self.ends_with_return = first.is_some() && text.ends_with(b"\r");
        self.has_other |= first.is_some_and(|at| at + 1 < text.len());
    }

    /// True if a carriage return is anywhere but at the end of the line.
    pub(super) const fn has_other(self) -> bool {
        self.has_other
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    struct Blocks(Vec<Vec<u8>>);

    impl Read for Blocks {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            while self.0.first().is_some_and(Vec::is_empty) {
                self.0.remove(0);
            }
            let Some(block) = self.0.first_mut() else { return Ok(0) };
            let length = block.len().min(buffer.len());
            buffer[..length].copy_from_slice(&block[..length]);
            block.drain(..length);
            Ok(length)
        }
    }

    /// Lines, and for each whether it came in parts.
    fn lines(reader: &mut LineReader<impl Read>) -> Vec<(Vec<u8>, bool)> {
        let mut lines: Vec<(Vec<u8>, bool)> = Vec::new();
        let mut is_open = false;
        while let Some(piece) = reader.next_piece().unwrap() {
            match piece {
                Piece::Line(line) => lines.push((line.to_vec(), false)),
                Piece::Part(LinePart { bytes, is_first, is_last }) => {
                    assert_eq!(is_first, !is_open, "the first part starts a line");
                    if is_first {
                        lines.push((Vec::new(), true));
                    }
                    lines.last_mut().unwrap().0.extend_from_slice(bytes);
                    is_open = !is_last;
                }
            }
        }
        assert!(!is_open, "every long line has a last part");
        lines
    }

    proptest! {
        #[test]
        fn the_pieces_are_the_stream_and_split_at_newlines(
            blocks in prop::collection::vec(prop::collection::vec(prop::sample::select(b"a{\n\r ".to_vec()), 0..40), 0..12),
            limit in 1_usize..30,
        ) {
            let all = blocks.concat();
            let lines = lines(&mut LineReader::with_limit(Blocks(blocks), limit));
            prop_assert_eq!(lines.iter().flat_map(|(line, _)| line.clone()).collect::<Vec<_>>(), all.clone());
            let expected: Vec<&[u8]> = all.split_inclusive(|byte| *byte == b'\n').collect();
            prop_assert_eq!(lines.iter().map(|(line, _)| &**line).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn bytes_of_another_framing_are_returned_as_they_come() {
        let blocks = [b"PRI * HTTP/2.0".to_vec(), b"\r\n\0\x01".to_vec()];
        let mut reader = LineReader::new(Blocks(blocks.to_vec()));
        let first = reader.next_piece().unwrap();
        assert_eq!(first, Some(Piece::Part(LinePart { bytes: b"PRI * HTTP/2.0", is_first: true, is_last: false })));
        let second = reader.next_piece().unwrap();
        assert_eq!(second, Some(Piece::Part(LinePart { bytes: b"\r\n", is_first: false, is_last: true })));
    }

    #[test]
    fn a_long_line_does_not_fill_the_memory() {
        let mut reader = LineReader::new(io::repeat(b'a').take(50 << 20));
        let lines = lines(&mut reader);
        assert_eq!((lines.len(), lines[0].0.len(), lines[0].1), (1, 50 << 20, true));
        assert!(reader.buffer.len() <= MAX_INSPECT_BYTES + 2 * READ_BYTES, "{}", reader.buffer.len());
    }

    #[test]
    fn a_carriage_return_is_found_unless_it_ends_the_line() {
        for (line, expected) in [
            ("{}\n", false),
            ("{}\r\n", false),
            ("{}\r", false),
            ("{}", false),
            ("{\r}\n", true),
            ("\r{}\n", true),
            ("{}\r\r\n", true),
            ("{}\r \r\n", true),
        ] {
            for size in 1..=line.len() {
                let mut ends = LineEnds::default();
                line.as_bytes().chunks(size).for_each(|piece| ends.push(piece));
                assert_eq!(ends.has_other(), expected, "{line:?} in pieces of {size}");
            }
        }
    }
}
