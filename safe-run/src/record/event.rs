//! The ledger: what happened, one event after the other, numbered from 1 without gaps.
//!
//! A line is an event when it is complete, so of two lines the one whose end was seen first comes first. The rest of a stream
//! without a final newline is an event at the end. Lines may be longer than memory: then they are read from where they are kept.

use std::io::{self, BufRead as _, BufReader, Read as _, Write};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use memchr::memchr_iter;

use super::Record;
use super::shell;
use crate::capture::Spool;
use crate::capture::{Stream, Tape};

/// Lines up to this length are held in memory while they are told, in bytes.
const HELD: usize = 1024 * 1024;

/// Something that happened.
#[derive(Debug)]
pub struct Event<'a> {
    /// Counted from 1.
    pub seq: u64,
    /// Since the command was started.
    pub at: Duration,
    /// What it was.
    pub kind: EventKind<'a>,
}

/// What happened.
#[derive(Debug)]
pub enum EventKind<'a> {
    /// The command was started.
    Started,
    /// It printed a line.
    Line(Stream, Line<'a>),
    /// Not everything that it printed could be kept.
    Incomplete(&'a io::Error),
    /// It ended, with this code to exit with.
    Exited(i32),
}

/// How a line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEnd {
    /// With a newline.
    Lf,
    /// With a carriage return and a newline, neither of which belongs to the text.
    CrLf,
    /// With the stream.
    Nothing,
}

/// A line without its end.
#[derive(Debug)]
pub struct Line<'a> {
    /// How it ends.
    pub end: LineEnd,
    text: Text<'a>,
}

#[derive(Debug)]
enum Text<'a> {
    Held(&'a [u8]),
    Kept { spool: &'a Spool, from: u64, to: u64 },
}

impl Line<'_> {
    /// The bytes, of whatever length.
    pub fn reader(&self) -> Box<dyn io::Read + '_> {
        match &self.text {
            Text::Held(bytes) => Box::new(*bytes),
            Text::Kept { spool, from, to } => Box::new(spool.reader(*from).take(to - from)),
        }
    }

    /// Writes the bytes as they are.
    pub fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        match &self.text {
            Text::Held(bytes) => out.write_all(bytes),
            Text::Kept { spool, from, to } => spool.copy(*from, *to, out),
        }
    }

    /// Writes the bytes in base64.
    pub fn write_base64(&self, out: &mut impl Write) -> io::Result<()> {
        match &self.text {
            Text::Held(bytes) => out.write_all(STANDARD.encode(bytes).as_bytes()),
            Text::Kept { .. } => {
                let mut encoder = EncoderWriter::new(out, &STANDARD);
                self.write_to(&mut encoder)?;
                encoder.finish().map(drop)
            }
        }
    }

    /// True where the bytes are UTF-8.
    pub fn is_utf8(&self) -> io::Result<bool> {
        match &self.text {
            Text::Held(bytes) => Ok(std::str::from_utf8(bytes).is_ok()),
            Text::Kept { .. } => is_utf8(self.reader()),
        }
    }

    /// True where the bytes begin so.
    pub fn starts_with(&self, prefix: &[u8]) -> io::Result<bool> {
        if let Text::Held(bytes) = &self.text {
            return Ok(bytes.starts_with(prefix));
        }
        let mut start = Vec::new();
        self.reader().take(prefix.len() as u64).read_to_end(&mut start)?;
        Ok(start == prefix)
    }
}

/// Whether bytes that come in pieces are UTF-8.
fn is_utf8(reader: impl io::Read) -> io::Result<bool> {
    let mut reader = BufReader::with_capacity(64 * 1024, reader);
    // At most three bytes of a character that has begun.
    let mut begun: Vec<u8> = Vec::new();
    loop {
        let piece = reader.fill_buf()?;
        if piece.is_empty() {
            return Ok(begun.is_empty());
        }
        let length = piece.len();
        begun.extend_from_slice(piece);
        reader.consume(length);
        match std::str::from_utf8(&begun) {
            Ok(_) => begun.clear(),
            Err(error) if error.error_len().is_none() => drop(begun.drain(..error.valid_up_to())),
            Err(_) => return Ok(false),
        }
    }
}

impl Record {
    /// Tells every event in its order.
    pub fn events<E: From<io::Error>>(&self, mut tell: impl FnMut(Event<'_>) -> Result<(), E>) -> Result<(), E> {
        let mut seq = 1;
        tell(Event { seq, at: Duration::ZERO, kind: EventKind::Started })?;
        lines(&self.tape, |stream, at, line| {
            seq += 1;
            tell(Event { seq, at, kind: EventKind::Line(stream, line) })
        })?;
        if let Some(error) = &self.lost {
            seq += 1;
            tell(Event { seq, at: self.elapsed, kind: EventKind::Incomplete(error) })?;
        }
        tell(Event { seq: seq + 1, at: self.elapsed, kind: EventKind::Exited(self.ending.exit_code()) })
    }

    /// The command as `sh` reads it.
    pub fn command_line(&self) -> String {
        shell::quote(&self.command)
    }
}

/// How far a stream has been told.
struct Told<'a> {
    spool: &'a Spool,
    /// Where the line begins that is not complete.
    line: u64,
    /// Where what has been seen of it ends.
    seen: u64,
    /// What has been seen of it, unless that is too long.
    begun: Option<Vec<u8>>,
    last: Duration,
}

impl<'a> Told<'a> {
    fn new(spool: &'a Spool) -> Self {
        Self { spool, line: 0, seen: 0, begun: Some(Vec::new()), last: Duration::ZERO }
    }

    /// Tells the line that has begun: its last bytes are `piece`, and it ends at `to`, with a newline or without.
    fn complete<E: From<io::Error>>(
        &mut self,
        piece: &[u8],
        (to, has_newline): (u64, bool),
        tell: impl FnOnce(Line<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let end = |is_crlf: bool| match (has_newline, is_crlf) {
            (false, _) => LineEnd::Nothing,
            (true, false) => LineEnd::Lf,
            (true, true) => LineEnd::CrLf,
        };
        let Some(begun) = &mut self.begun else {
            let mut last = [0];
            self.spool.read_at(to - 1, &mut last)?;
            let is_crlf = has_newline && last == *b"\r";
            let text = Text::Kept { spool: self.spool, from: self.line, to: to - u64::from(is_crlf) };
            return tell(Line { end: end(is_crlf), text });
        };
        let whole = if begun.is_empty() {
            piece
        } else {
            begun.extend_from_slice(piece);
            begun
        };
        let stripped = whole.strip_suffix(b"\r").filter(|_| has_newline);
        tell(Line { end: end(stripped.is_some()), text: Text::Held(stripped.unwrap_or(whole)) })
    }

    /// Goes on by a block.
    fn block<E: From<io::Error>>(
        &mut self,
        block: &[u8],
        mut tell: impl FnMut(Line<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (start, mut done) = (self.seen, 0);
        for newline in memchr_iter(b'\n', block) {
            self.complete(&block[done..newline], (start + newline as u64, true), &mut tell)?;
            done = newline + 1;
            self.line = start + done as u64;
            self.begun.get_or_insert_default().clear();
        }
        self.seen = start + block.len() as u64;
        self.begun = self.begun.take().filter(|begun| begun.len() + block.len() - done <= HELD);
        if let Some(begun) = &mut self.begun {
            begun.extend_from_slice(&block[done..]);
        }
        Ok(())
    }
}

/// Tells every line in the order in which the lines became complete.
pub(crate) fn lines<E: From<io::Error>>(
    tape: &Tape,
    mut tell: impl FnMut(Stream, Duration, Line<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut told = Stream::ALL.map(|stream| Told::new(tape.spool(stream)));
    let mut buffer = vec![0; 64 * 1024];
    for piece in tape.pieces() {
        let piece = piece?;
        let told = &mut told[piece.stream as usize];
        told.last = piece.at;
        let end = told.seen + piece.length;
        while told.seen < end {
            let room = usize::try_from(end - told.seen).unwrap_or(usize::MAX).min(buffer.len());
            let read = told.spool.read_at(told.seen, &mut buffer[..room])?;
            if read == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            told.block(&buffer[..read], |line| tell(piece.stream, piece.at, line))?;
        }
    }
    let mut rest: Vec<_> = Stream::ALL.into_iter().zip(told).filter(|(_, told)| told.line < told.seen).collect();
    rest.sort_by_key(|(_, told)| told.last);
    for (stream, mut told) in rest {
        let (at, to) = (told.last, told.seen);
        told.complete(&[], (to, false), |line| tell(stream, at, line))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use proptest::prelude::*;

    use super::*;

    /// Every line of a tape: its stream, its bytes and its end.
    fn told(tape: &Tape) -> Vec<(Stream, Vec<u8>, LineEnd)> {
        let mut told = Vec::new();
        lines(tape, |stream, _, line| {
            let mut bytes = Vec::new();
            line.write_to(&mut bytes)?;
            assert_eq!(line.is_utf8()?, std::str::from_utf8(&bytes).is_ok());
            let mut base64 = Vec::new();
            line.write_base64(&mut base64)?;
            assert_eq!(STANDARD.decode(base64).unwrap(), bytes);
            told.push((stream, bytes, line.end));
            Ok::<_, io::Error>(())
        })
        .unwrap();
        told
    }

    fn tape(pieces: &[(Stream, &[u8])]) -> Tape {
        let mut tape = Tape::default();
        for (at, (stream, bytes)) in (0..).zip(pieces) {
            tape.push(*stream, Duration::from_micros(at), bytes).unwrap();
        }
        tape
    }

    #[test]
    fn the_line_that_is_complete_first_comes_first() {
        use Stream::{Stderr, Stdout};
        let tape = tape(&[(Stdout, b"a"), (Stderr, b"x\n"), (Stdout, b"b\nc"), (Stderr, b"y"), (Stdout, b"d")]);
        let expected = [
            (Stderr, b"x".to_vec(), LineEnd::Lf),
            (Stdout, b"ab".to_vec(), LineEnd::Lf),
            (Stderr, b"y".to_vec(), LineEnd::Nothing),
            (Stdout, b"cd".to_vec(), LineEnd::Nothing),
        ];
        assert_eq!(told(&tape), expected);
    }

    #[test]
    fn a_line_end_may_be_cut_anywhere() {
        let expected = [("a", LineEnd::CrLf), ("", LineEnd::CrLf), ("b\r", LineEnd::CrLf), ("c\r", LineEnd::Nothing)];
        let expected = expected.map(|(text, end)| (Stream::Stdout, text.as_bytes().to_vec(), end));
        let all = b"a\r\n\r\nb\r\r\nc\r";
        for cut in 0..=all.len() {
            let (before, after) = all.split_at(cut);
            assert_eq!(told(&tape(&[(Stream::Stdout, before), (Stream::Stdout, after)])), expected, "{cut}");
        }
    }

    #[test]
    fn a_line_longer_than_what_is_held_is_told_whole() {
        let mut long = "ä".repeat(HELD).into_bytes();
        let line = long.clone();
        long.extend(b"\r\nshort\n");
        long.extend(vec![b'\xff'; HELD + 1]);
        let tape = tape(&[(Stream::Stdout, &long)]);
        let expected = [
            (Stream::Stdout, line, LineEnd::CrLf),
            (Stream::Stdout, b"short".to_vec(), LineEnd::Lf),
            (Stream::Stdout, vec![b'\xff'; HELD + 1], LineEnd::Nothing),
        ];
        assert!(told(&tape) == expected);
    }

    proptest! {
        #[test]
        fn the_lines_of_a_stream_are_its_bytes(
            pieces in prop::collection::vec((any::<bool>(), prop::collection::vec(prop::sample::select(&b"ab\r\n\n\xc3\xa4"[..]), 1..9)), 0..20)
        ) {
            let mut tape = Tape::default();
            let mut expected = [Vec::new(), Vec::new()];
            for (is_error, bytes) in pieces {
                let stream = if is_error { Stream::Stderr } else { Stream::Stdout };
                tape.push(stream, Duration::ZERO, &bytes).unwrap();
                expected[stream as usize].extend(bytes);
            }
            let mut found = [Vec::new(), Vec::new()];
            for (stream, text, end) in told(&tape) {
                let found = &mut found[stream as usize];
                found.write_all(&text).unwrap();
                found.extend(match end { LineEnd::Lf => &b"\n"[..], LineEnd::CrLf => b"\r\n", LineEnd::Nothing => b"" });
            }
            prop_assert_eq!(found, expected);
        }
    }
}
