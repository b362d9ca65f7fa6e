//! Captured bytes as lines, in the order in which the lines became complete.
//!
//! A line is complete when its newline has been read. Text after the last newline of a stream is a line at the end. A line
//! that is longer than [`MEMORY_LIMIT`] is read from the capture again instead of being held in memory.

use std::io::{self, BufRead as _, BufReader, Read as _, Write};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use memchr::memchr_iter;

use super::chunks::{Capture, Stream};
use counterproof_store::spill_buffer::SpillBuffer;

/// The longest line that is held in memory, in bytes.
const MEMORY_LIMIT: usize = 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEnd {
    /// With a newline.
    Lf,
    /// With a carriage return and a newline; neither belongs to the text.
    CrLf,
    EndOfStream,
}

#[derive(Debug)]
pub struct Line<'a> {
    pub end: LineEnd,
    text: Text<'a>,
}

#[derive(Debug)]
enum Text<'a> {
    InMemory(&'a [u8]),
    /// A range of a stream, in bytes; `to` is exclusive.
    Captured {
        bytes: &'a SpillBuffer,
        from: u64,
        to: u64,
    },
}

impl Line<'_> {
    /// Returns a reader of the line's bytes, which can be more than fit into memory.
    pub fn reader(&self) -> Box<dyn io::Read + '_> {
        match &self.text {
            Text::InMemory(bytes) => Box::new(*bytes),
            Text::Captured { bytes, from, to } => Box::new(bytes.reader(*from).take(to - from)),
        }
    }

    pub fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        match &self.text {
            Text::InMemory(bytes) => out.write_all(bytes),
            Text::Captured { bytes, from, to } => bytes.copy(*from, *to, out),
        }
    }

    pub fn write_base64(&self, out: &mut impl Write) -> io::Result<()> {
        match &self.text {
            Text::InMemory(bytes) => out.write_all(STANDARD.encode(bytes).as_bytes()),
            Text::Captured { .. } => {
                let mut encoder = EncoderWriter::new(out, &STANDARD);
                self.write_to(&mut encoder)?;
                encoder.finish().map(drop)
            }
        }
    }

    pub fn is_utf8(&self) -> io::Result<bool> {
        match &self.text {
            Text::InMemory(bytes) => Ok(std::str::from_utf8(bytes).is_ok()),
            Text::Captured { .. } => is_utf8(self.reader()),
        }
    }

    pub fn starts_with(&self, prefix: &[u8]) -> io::Result<bool> {
        if let Text::InMemory(bytes) = &self.text {
            return Ok(bytes.starts_with(prefix));
        }
        let mut start = Vec::new();
        self.reader().take(prefix.len() as u64).read_to_end(&mut start)?;
        Ok(start == prefix)
    }
}

/// Checks UTF-8 block by block, in constant memory.
fn is_utf8(reader: impl io::Read) -> io::Result<bool> {
    let mut reader = BufReader::with_capacity(64 * 1024, reader);
    // A block can end within a character. Its first bytes, at most three, wait here for the next block.
    let mut pending: Vec<u8> = Vec::new();
    loop {
        let block = reader.fill_buf()?;
        if block.is_empty() {
            return Ok(pending.is_empty());
        }
        let length = block.len();
        pending.extend_from_slice(block);
        reader.consume(length);
        match std::str::from_utf8(&pending) {
            Ok(_) => pending.clear(),
            Err(error) if error.error_len().is_none() => drop(pending.drain(..error.valid_up_to())),
            Err(_) => return Ok(false),
        }
    }
}

/// Calls `visit` with every line, its stream, and the time at which the line became complete.
pub(crate) fn for_each_line<E: From<io::Error>>(
    capture: &Capture,
    mut visit: impl FnMut(Stream, Duration, Line<'_>) -> Result<(), E>,
) -> Result<(), E> {
    // One splitter per stream, because a chunk of one stream can come between two halves of a line of the other.
    let mut splitters = Stream::ALL.map(|stream| LineSplitter::new(capture.bytes(stream)));
    let mut buffer = vec![0; 64 * 1024];
    for chunk in capture.chunks() {
        let chunk = chunk?;
        let splitter = &mut splitters[chunk.stream as usize];
        splitter.last_at = chunk.at;
        let end = splitter.position + chunk.length;
        // A chunk can be larger than the buffer: one read of the session takes up to 256 KiB.
        while splitter.position < end {
            let room = usize::try_from(end - splitter.position).unwrap_or(usize::MAX).min(buffer.len());
            let read = splitter.bytes.read_at(splitter.position, &mut buffer[..room])?;
            if read == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            splitter.push(&buffer[..read], |line| visit(chunk.stream, chunk.at, line))?;
        }
    }
    let unfinished = Stream::ALL.into_iter().zip(splitters);
    let mut unfinished: Vec<_> = unfinished.filter(|(_, splitter)| splitter.line_start < splitter.position).collect();
    // The capture does not record when a stream ended, so the time of its last chunk decides.
    unfinished.sort_by_key(|(_, splitter)| splitter.last_at);
    for (stream, mut splitter) in unfinished {
        let at = splitter.last_at;
        splitter.finish(|line| visit(stream, at, line))?;
    }
    Ok(())
}

struct LineSplitter<'a> {
    bytes: &'a SpillBuffer,
    /// Offset at which the incomplete line begins.
    line_start: u64,
    /// Offset up to which the stream has been split.
    position: u64,
    /// The incomplete line so far; `None` if it is longer than [`MEMORY_LIMIT`].
    partial: Option<Vec<u8>>,
    last_at: Duration,
}

impl<'a> LineSplitter<'a> {
    fn new(bytes: &'a SpillBuffer) -> Self {
        Self { bytes, line_start: 0, position: 0, partial: Some(Vec::new()), last_at: Duration::ZERO }
    }

    fn push<E: From<io::Error>>(
        &mut self,
        block: &[u8],
        mut visit: impl FnMut(Line<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (start, mut done) = (self.position, 0);
        for newline in memchr_iter(b'\n', block) {
            self.emit_terminated(&block[done..newline], start + newline as u64, &mut visit)?;
            done = newline + 1;
            self.line_start = start + done as u64;
            // Keeps the allocation for the next line. A line beyond the limit gets a new buffer.
            self.partial.get_or_insert_default().clear();
        }
        self.position = start + block.len() as u64;
        // Beyond the limit, the line is no longer collected: its range in the capture is enough to read it again.
        self.partial = self.partial.take().filter(|partial| partial.len() + block.len() - done <= MEMORY_LIMIT);
        if let Some(partial) = &mut self.partial {
            partial.extend_from_slice(&block[done..]);
        }
        Ok(())
    }

    /// Emits a line whose newline is at the offset `newline`. `rest` is the part of it that is not in `partial` yet.
    fn emit_terminated<E: From<io::Error>>(
        &mut self,
        rest: &[u8],
        newline: u64,
        visit: impl FnOnce(Line<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let end = |is_crlf| if is_crlf { LineEnd::CrLf } else { LineEnd::Lf };
        let Some(partial) = &mut self.partial else {
            // The line is not in memory, so its last byte must be read to detect CRLF.
            let mut last = [0];
            self.bytes.read_at(newline - 1, &mut last)?;
            let is_crlf = last == *b"\r";
            let text = Text::Captured { bytes: self.bytes, from: self.line_start, to: newline - u64::from(is_crlf) };
            return visit(Line { end: end(is_crlf), text });
        };
        // Most lines are inside one block and need no copy.
        let whole = if partial.is_empty() {
            rest
        } else {
            partial.extend_from_slice(rest);
            partial
        };
        // The carriage return can be in `partial` with the newline in the next block, so it is looked for in the whole line.
        let stripped = whole.strip_suffix(b"\r");
        visit(Line { end: end(stripped.is_some()), text: Text::InMemory(stripped.unwrap_or(whole)) })
    }

    /// Emits the text after the last newline. A carriage return at its end belongs to the text.
    fn finish<E>(&mut self, visit: impl FnOnce(Line<'_>) -> Result<(), E>) -> Result<(), E> {
        let text = match &self.partial {
            Some(partial) => Text::InMemory(partial),
            None => Text::Captured { bytes: self.bytes, from: self.line_start, to: self.position },
        };
        visit(Line { end: LineEnd::EndOfStream, text })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use proptest::prelude::*;

    use super::*;

    /// Returns every line of a capture: its stream, its bytes and its end.
    fn lines_of(capture: &Capture) -> Vec<(Stream, Vec<u8>, LineEnd)> {
        let mut found = Vec::new();
        for_each_line(capture, |stream, _, line| {
            let mut bytes = Vec::new();
            line.write_to(&mut bytes)?;
            assert_eq!(line.is_utf8()?, std::str::from_utf8(&bytes).is_ok());
            let mut base64 = Vec::new();
            line.write_base64(&mut base64)?;
            assert_eq!(STANDARD.decode(base64).unwrap(), bytes);
            found.push((stream, bytes, line.end));
            Ok::<_, io::Error>(())
        })
        .unwrap();
        found
    }

    fn capture(chunks: &[(Stream, &[u8])]) -> Capture {
        let mut capture = Capture::default();
        for (at, (stream, bytes)) in (0..).zip(chunks) {
            capture.push(*stream, Duration::from_micros(at), bytes).unwrap();
        }
        capture
    }

    #[test]
    fn lines_are_ordered_by_when_they_became_complete() {
        use Stream::{Stderr, Stdout};
        let capture = capture(&[(Stdout, b"a"), (Stderr, b"x\n"), (Stdout, b"b\nc"), (Stderr, b"y"), (Stdout, b"d")]);
        let expected = [
            (Stderr, b"x".to_vec(), LineEnd::Lf),
            (Stdout, b"ab".to_vec(), LineEnd::Lf),
            (Stderr, b"y".to_vec(), LineEnd::EndOfStream),
            (Stdout, b"cd".to_vec(), LineEnd::EndOfStream),
        ];
        assert_eq!(lines_of(&capture), expected);
    }

    #[test]
    fn a_line_end_can_be_split_across_chunks() {
        let expected =
            [("a", LineEnd::CrLf), ("", LineEnd::CrLf), ("b\r", LineEnd::CrLf), ("c\r", LineEnd::EndOfStream)];
        let expected = expected.map(|(text, end)| (Stream::Stdout, text.as_bytes().to_vec(), end));
        let all = b"a\r\n\r\nb\r\r\nc\r";
        for cut in 0..=all.len() {
            let (before, after) = all.split_at(cut);
            assert_eq!(lines_of(&capture(&[(Stream::Stdout, before), (Stream::Stdout, after)])), expected, "{cut}");
        }
    }

    #[test]
    fn a_line_longer_than_the_memory_limit_is_emitted_whole() {
        let mut long = "ä".repeat(MEMORY_LIMIT).into_bytes();
        let line = long.clone();
        long.extend(b"\r\nshort\n");
        long.extend(vec![b'\xff'; MEMORY_LIMIT + 1]);
        let capture = capture(&[(Stream::Stdout, &long)]);
        let expected = [
            (Stream::Stdout, line, LineEnd::CrLf),
            (Stream::Stdout, b"short".to_vec(), LineEnd::Lf),
            (Stream::Stdout, vec![b'\xff'; MEMORY_LIMIT + 1], LineEnd::EndOfStream),
        ];
        assert!(lines_of(&capture) == expected);
    }

    proptest! {
        #[test]
        fn the_lines_of_a_stream_concatenate_to_its_bytes(
            chunks in prop::collection::vec((any::<bool>(), prop::collection::vec(prop::sample::select(&b"ab\r\n\n\xc3\xa4"[..]), 1..9)), 0..20)
        ) {
            let mut capture = Capture::default();
            let mut expected = [Vec::new(), Vec::new()];
            for (is_error, bytes) in chunks {
                let stream = if is_error { Stream::Stderr } else { Stream::Stdout };
                capture.push(stream, Duration::ZERO, &bytes).unwrap();
                expected[stream as usize].extend(bytes);
            }
            let mut found = [Vec::new(), Vec::new()];
            for (stream, text, end) in lines_of(&capture) {
                let found = &mut found[stream as usize];
                found.write_all(&text).unwrap();
                found.extend(match end { LineEnd::Lf => &b"\n"[..], LineEnd::CrLf => b"\r\n", LineEnd::EndOfStream => b"" });
            }
            prop_assert_eq!(found, expected);
        }
    }
}
