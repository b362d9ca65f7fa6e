//! The log of a record: split sections and ledger, or the merged output. Its format is the conformance contract M0-v0.1.0.

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Record;
use super::event::{Event, EventKind, Line};
use crate::capture::Stream;

/// What a text begins with whose bytes are not UTF-8, and stand in base64 behind it. A text that begins so by itself is
/// written in base64 too, so that none is taken for another.
pub const BASE64: &str = "base64:";

/// The line before the ledger, with the end of the line above it: within a line it is no marker.
pub(crate) const BEGIN: &[u8] = b"\n--- BEGIN EVENTS ---\n";

/// The last line, behind the ledger.
pub(crate) const END: &[u8] = b"--- END EVENTS ---\n";

/// The line before what a stream printed.
pub(crate) const fn header(stream: Stream) -> &'static [u8] {
    match stream {
        Stream::Stdout => b"=== STDOUT ===\n",
        Stream::Stderr => b"=== STDERR ===\n",
    }
}

/// What a log shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum View {
    /// The two streams apart, and the ledger of events.
    #[default]
    Ledger,
    /// The bytes of both streams as they came.
    Merged,
}

impl Record {
    /// Writes the log.
    pub fn write_log(&self, view: View, out: &mut impl Write) -> io::Result<()> {
        match view {
            View::Ledger => self.write_ledger(out),
            View::Merged => self.write_merged(out),
        }
    }

    fn write_ledger(&self, out: &mut impl Write) -> io::Result<()> {
        self.write_section(Stream::Stdout, out)?;
        self.write_section(Stream::Stderr, out)?;
        // The section above has ended its line.
        out.write_all(&BEGIN[1..])?;
        let mut start = Vec::new();
        self.events(|event| self.write_event(&event, &mut start, out))?;
        out.write_all(END)
    }

    fn write_section(&self, stream: Stream, out: &mut impl Write) -> io::Result<()> {
        out.write_all(header(stream))?;
        let spool = self.tape.spool(stream);
        spool.copy(0, spool.len(), out)?;
        let mut last = *b"\n";
        if spool.len() > 0 {
            spool.read_at(spool.len() - 1, &mut last)?;
        }
        out.write_all(if last == *b"\n" { b"\n" } else { b"\n\n" })
    }

    /// Writes an event. Most of a large log's time is spent here, so what stands before the text is put together in `start`, which
    /// is kept from event to event, and written at once.
    fn write_event(&self, event: &Event<'_>, start: &mut Vec<u8>, out: &mut impl Write) -> io::Result<()> {
        start.clear();
        start.extend_from_slice(b"[SEQ=");
        write_number(event.seq, start);
        match &event.kind {
            EventKind::Line(stream, line) => {
                start.extend_from_slice(match stream {
                    Stream::Stdout => b"][STDOUT] ",
                    Stream::Stderr => b"][STDERR] ",
                });
                out.write_all(start)?;
                write_text(line, out)?;
            }
            meta => {
                out.write_all(start)?;
                write!(out, "][META] {}", self.meta(meta))?;
            }
        }
        out.write_all(b"\n")
    }

    /// The text of an event that is no line.
    pub(crate) fn meta(&self, kind: &EventKind<'_>) -> String {
        match kind {
            EventKind::Started => format!("safe-run start: cmd=\"{}\"", self.command_line()),
            EventKind::Incomplete(error) => format!("safe-run incomplete: {error}"),
            EventKind::Exited(code) => format!("safe-run exit: code={code}"),
            EventKind::Line(..) => String::new(),
        }
    }

    fn write_merged(&self, out: &mut impl Write) -> io::Result<()> {
        let mut done = [0; 2];
        for piece in self.tape.pieces() {
            let piece = piece?;
            let from = &mut done[piece.stream as usize];
            self.tape.spool(piece.stream).copy(*from, *from + piece.length, out)?;
            *from += piece.length;
        }
        Ok(())
    }
}

/// Decimal digits, without the machinery of formatting.
fn write_number(mut number: u64, out: &mut Vec<u8>) {
    let from = out.len();
    loop {
        let [digit, ..] = (number % 10).to_le_bytes();
        out.push(b'0' + digit);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out[from..].reverse();
}

/// Writes a line of any length; [`text_of`] is the same for one that is held.
fn write_text(line: &Line<'_>, out: &mut impl Write) -> io::Result<()> {
    if line.is_utf8()? && !line.starts_with(BASE64.as_bytes())? {
        return line.write_to(out);
    }
    out.write_all(BASE64.as_bytes())?;
    line.write_base64(out)
}

/// A line as the ledger writes it.
pub(crate) fn text_of(line: &[u8]) -> String {
    match str::from_utf8(line) {
        Ok(text) if !text.starts_with(BASE64) => text.to_owned(),
        _ => format!("{BASE64}{}", STANDARD.encode(line)),
    }
}
