//! Redacts the secrets of a record.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};

use counterproof_redaction::{Applied, RedactingStream, Redactor};
use memchr::memchr_iter;

use super::Record;
use counterproof_store::spill_buffer::{SpillBuffer, SpillReader};

use crate::capture::{Capture, Chunk, Stream};

impl Record {
    /// Replaces every secret in the command and in its output. The number of lines and their order do not change. For a line
    /// that arrived in several chunks, only the time of the last chunk remains.
    pub fn redacted(self, redactor: &Redactor) -> io::Result<Self> {
        // Events are numbered by line, so a secret of several lines must not merge them.
        let redactor = redactor.clone().with_line_breaks();
        let end = if self.capture_error.is_some() { StreamEnd::Cut } else { StreamEnd::Complete };
        let mut capture = Capture::default();
        for stream in Stream::ALL {
            redact_stream(self.capture.bytes(stream), capture.bytes_mut(stream), &redactor, end)?;
        }
        let chunks = redacted_order(&self.capture, &capture)?;
        chunks.into_iter().try_for_each(|chunk| capture.push_order(chunk))?;
        let command = self.command.iter().map(|word| redact_word(word, &redactor)).collect();
        Ok(Self { command, capture, ..self })
    }
}

fn redact_word(word: &OsString, redactor: &Redactor) -> OsString {
    match redactor.bytes(word.as_encoded_bytes(), &mut Applied::default()) {
        // A word without a secret keeps its bytes, even if they are not UTF-8.
        Cow::Borrowed(_) => word.clone(),
        Cow::Owned(bytes) => String::from_utf8_lossy(&bytes).into_owned().into(),
    }
}

/// Whether a captured stream is complete. A secret can be cut off at the end of an incomplete one.
#[derive(Debug, Clone, Copy)]
enum StreamEnd {
    Complete,
    Cut,
}

fn redact_stream(from: &SpillBuffer, to: &mut SpillBuffer, redactor: &Redactor, end: StreamEnd) -> io::Result<()> {
    let (mut reader, mut stream) = (from.reader(0), RedactingStream::new(redactor.clone()));
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = reader.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        // The stream holds back a possible start of a secret, so its output can be shorter than its input.
        to.write_all(&stream.push(&buffer[..read]))?;
    }
    let (rest, _applied) = match end {
        StreamEnd::Complete => stream.finish(),
        StreamEnd::Cut => stream.finish_truncated(),
    };
    to.write_all(&rest)
}

/// Returns the chunks of the redacted streams. Each chunk holds the lines that its original chunk completed.
fn redacted_order(before: &Capture, after: &Capture) -> io::Result<Vec<Chunk>> {
    let mut lines = Stream::ALL.map(|stream| LinePair {
        raw: BufReader::new(before.bytes(stream).reader(0)),
        redacted: BufReader::new(after.bytes(stream).reader(0)),
        last: None,
    });
    let mut chunks = Vec::new();
    for chunk in before.chunks() {
        let chunk = chunk?;
        let lines = &mut lines[chunk.stream as usize];
        lines.last = Some(chunk);
        // A secret can extend over chunks, so redacted bytes are assigned to chunks by whole lines.
        let length = lines.advance(chunk.length)?;
        // An empty chunk would add nothing but an entry: its bytes are part of a line that a later chunk completes.
        if length > 0 {
            chunks.push(Chunk { length, ..chunk });
        }
    }
    for lines in &mut lines {
        if let Some(chunk) = lines.last {
            let length = io::copy(&mut lines.redacted, &mut io::sink())?;
            chunks.push(Chunk { length, ..chunk });
        }
    }
    // The rest of a stream has the time of the stream's last chunk, which can be earlier than chunks of the other stream.
    chunks.sort_by_key(|chunk| chunk.at);
    Ok(chunks)
}

struct LinePair<'a> {
    raw: BufReader<SpillReader<'a>>,
    redacted: BufReader<SpillReader<'a>>,
    last: Option<Chunk>,
}

impl LinePair<'_> {
    /// Advances by `bytes` bytes of the original, and returns the redacted length of the lines that end within them.
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
    fn secrets_are_redacted_and_lines_keep_their_order() {
        use Stream::{Stderr, Stdout};
        let mut capture = Capture::default();
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
            capture.push(stream, Duration::from_micros(at), text.as_bytes()).unwrap();
        }
        let record = Record {
            command: vec!["login".into(), "--password=hunter2-hunter2".into()],
            started_at: jiff::Timestamp::UNIX_EPOCH,
            elapsed: Duration::from_micros(9),
            ending: Ending::Exited(1),
            aborted_by: None,
            stopped: None,
            left_behind: 0,
            capture_error: None,
            output_errors: Vec::new(),
            capture,
        };
        let record = record.redacted(&Redactor::new(["hunter2-hunter2"]).unwrap()).unwrap();
        let mut log = Vec::new();
        record.write_log(crate::LogView::Ledger, &mut log).unwrap();
        let expected = "=== STDOUT ===\none\n[redacted] two\nthree\n\n=== STDERR ===\nfirst\n[redacted]\n\n\n\nlast\n\n\
            --- BEGIN EVENTS ---\n[SEQ=1][META] safe-run start: cmd=\"login '--password=[redacted]'\"\n\
            [SEQ=2][STDOUT] one\n[SEQ=3][STDERR] first\n[SEQ=4][STDOUT] [redacted] two\n[SEQ=5][STDERR] [redacted]\n\
            [SEQ=6][STDERR] \n[SEQ=7][STDERR] \n[SEQ=8][STDOUT] three\n[SEQ=9][STDERR] \n[SEQ=10][STDERR] last\n\
            [SEQ=11][META] safe-run exit: code=1\n--- END EVENTS ---\n";
        assert_eq!(String::from_utf8(log).unwrap(), expected);
    }
}
