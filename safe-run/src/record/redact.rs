//! A record without its secrets.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};

use counterproof_redaction::{Applied, RedactingStream, Redactor};
use memchr::memchr_iter;

use super::Record;
use crate::capture::{Piece, Stream, Tape};
use crate::capture::{Reader, Spool};

impl Record {
    /// The same record with a mask for every secret in the command and in what it printed. As many lines are left as there
    /// were, complete in the same order; of a line that came in several pieces only the time of the last is kept.
    pub fn redacted(self, redactor: &Redactor) -> io::Result<Self> {
        let redactor = redactor.clone().keeping_lines();
        let mut tape = Tape::default();
        for stream in Stream::ALL {
            redact(self.tape.spool(stream), tape.spool_mut(stream), &redactor, self.lost.is_some())?;
        }
        let pieces = reordered(&self.tape, &tape)?;
        pieces.into_iter().try_for_each(|piece| tape.note(piece))?;
        let command = self.command.iter().map(|word| redact_word(word, &redactor)).collect();
        Ok(Self { command, tape, ..self })
    }
}

fn redact_word(word: &OsString, redactor: &Redactor) -> OsString {
    match redactor.bytes(word.as_encoded_bytes(), &mut Applied::default()) {
        Cow::Borrowed(_) => word.clone(),
        Cow::Owned(bytes) => String::from_utf8_lossy(&bytes).into_owned().into(),
    }
}

fn redact(from: &Spool, to: &mut Spool, redactor: &Redactor, is_cut: bool) -> io::Result<()> {
    let (mut reader, mut stream) = (from.reader(0), RedactingStream::new(redactor.clone()));
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = reader.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        to.write_all(&stream.push(&buffer[..read]))?;
    }
    let (rest, _applied) = if is_cut { stream.finish_cut() } else { stream.finish() };
    to.write_all(&rest)
}

/// The pieces of the redacted streams: each has the lines that were complete with the piece as it came.
fn reordered(before: &Tape, after: &Tape) -> io::Result<Vec<Piece>> {
    let mut lines = Stream::ALL.map(|stream| Lines {
        raw: BufReader::new(before.spool(stream).reader(0)),
        redacted: BufReader::new(after.spool(stream).reader(0)),
        last: None,
    });
    let mut pieces = Vec::new();
    for piece in before.pieces() {
        let piece = piece?;
        let lines = &mut lines[piece.stream as usize];
        lines.last = Some(piece);
        let length = lines.advance(piece.length)?;
        if length > 0 {
            pieces.push(Piece { length, ..piece });
        }
    }
    for lines in &mut lines {
        if let Some(piece) = lines.last {
            let length = io::copy(&mut lines.redacted, &mut io::sink())?;
            pieces.push(Piece { length, ..piece });
        }
    }
    // What is left of each stream comes at the time of its last piece, which may be before others.
    pieces.sort_by_key(|piece| piece.at);
    Ok(pieces)
}

struct Lines<'a> {
    raw: BufReader<Reader<'a>>,
    redacted: BufReader<Reader<'a>>,
    last: Option<Piece>,
}

impl Lines<'_> {
    /// Goes on by so many bytes as they came, and tells how many there are of the lines that these end.
    fn advance(&mut self, mut bytes: u64) -> io::Result<u64> {
        let mut length = 0;
        while bytes > 0 {
            let block = self.raw.fill_buf()?;
            let taken = block.len().min(usize::try_from(bytes).unwrap_or(usize::MAX));
            if taken == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            for _ in memchr_iter(b'\n', &block[..taken]) {
                length += self.redacted.skip_until(b'\n')? as u64;
            }
            self.raw.consume(taken);
            bytes -= taken as u64;
        }
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::record::Ending;

    #[test]
    fn secrets_are_masked_and_lines_stay_in_their_order() {
        use Stream::{Stderr, Stdout};
        let mut tape = Tape::default();
        let key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0\n-----END PRIVATE KEY-----";
        let printed = [
            (Stdout, "one\nhunter2-"),
            (Stderr, "first\n"),
            (Stdout, "hunter2 two\n"),
            (Stderr, key),
            (Stdout, "three\n"),
            (Stderr, "\nlast"),
        ];
        for (at, (stream, text)) in (1..).zip(printed) {
            tape.push(stream, Duration::from_micros(at), text.as_bytes()).unwrap();
        }
        let record = Record {
            command: vec!["login".into(), "--password=hunter2-hunter2".into()],
            started_at: jiff::Timestamp::UNIX_EPOCH,
            elapsed: Duration::from_micros(9),
            ending: Ending::Exited(1),
            aborted_by: None,
            left_behind: 0,
            lost: None,
            unwritten: Vec::new(),
            tape,
        };
        let record = record.redacted(&Redactor::new(["hunter2-hunter2"]).unwrap()).unwrap();
        let mut log = Vec::new();
        record.write_log(crate::View::Ledger, &mut log).unwrap();
        let expected = "=== STDOUT ===\none\n[redacted] two\nthree\n\n=== STDERR ===\nfirst\n[redacted]\n\n\n\nlast\n\n\
            --- BEGIN EVENTS ---\n[SEQ=1][META] safe-run start: cmd=\"login '--password=[redacted]'\"\n\
            [SEQ=2][STDOUT] one\n[SEQ=3][STDERR] first\n[SEQ=4][STDOUT] [redacted] two\n[SEQ=5][STDERR] [redacted]\n\
            [SEQ=6][STDERR] \n[SEQ=7][STDERR] \n[SEQ=8][STDOUT] three\n[SEQ=9][STDERR] \n[SEQ=10][STDERR] last\n\
            [SEQ=11][META] safe-run exit: code=1\n--- END EVENTS ---\n";
        assert_eq!(String::from_utf8(log).unwrap(), expected);
    }
}
