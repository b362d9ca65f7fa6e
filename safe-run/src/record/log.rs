//! Writes the log of a record: one section per stream and the ledger, or the merged output. The conformance contract
//! M0-v0.1.0 defines the format.

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Record;
use super::event::{Event, EventKind};
use crate::capture::{Line, Stream};

/// Marks a ledger text that is base64 because its bytes are not UTF-8. Text that begins with this prefix itself is also
/// written in base64, so that a reader can decode every text without ambiguity.
pub(crate) const BASE64_PREFIX: &str = "base64:";

/// The marker before the ledger. It includes the newline of the line above, because the text counts as a marker only at the
/// start of a line.
pub(crate) const LEDGER_BEGIN: &[u8] = b"\n--- BEGIN EVENTS ---\n";

/// The last line of the log, after the ledger.
pub(crate) const LEDGER_END: &[u8] = b"--- END EVENTS ---\n";

/// The line before the section of a stream.
pub(crate) const fn section_header(stream: Stream) -> &'static [u8] {
    match stream {
        Stream::Stdout => b"=== STDOUT ===\n",
        Stream::Stderr => b"=== STDERR ===\n",
    }
}

/// What a log contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogView {
    /// One section per stream, then the ledger of events.
    #[default]
    Ledger,
    /// The bytes of both streams in the order of the reads.
    Merged,
}

impl Record {
    pub fn write_log(&self, view: LogView, out: &mut impl Write) -> io::Result<()> {
        match view {
            LogView::Ledger => self.write_ledger(out),
            LogView::Merged => self.write_merged(out),
        }
    }

    fn write_ledger(&self, out: &mut impl Write) -> io::Result<()> {
        self.write_section(Stream::Stdout, out)?;
        self.write_section(Stream::Stderr, out)?;
        // The section before the marker ends with its own newline.
        out.write_all(&LEDGER_BEGIN[1..])?;
        let mut prefix = Vec::new();
        self.for_each_event(|event| self.write_event(&event, &mut prefix, out))?;
        out.write_all(LEDGER_END)
    }

    fn write_section(&self, stream: Stream, out: &mut impl Write) -> io::Result<()> {
        out.write_all(section_header(stream))?;
        let bytes = self.capture.bytes(stream);
        bytes.copy(0, bytes.len(), out)?;
        let mut last = *b"\n";
        if !bytes.is_empty() {
            bytes.read_at(bytes.len() - 1, &mut last)?;
        }
        out.write_all(if last == *b"\n" { b"\n" } else { b"\n\n" })
    }

    /// Writes one event. A large log spends most of its time here, so the text before the line is built in `prefix`, a buffer
    /// that is reused for every event, and written with one call.
    fn write_event(&self, event: &Event<'_>, prefix: &mut Vec<u8>, out: &mut impl Write) -> io::Result<()> {
        prefix.clear();
        prefix.extend_from_slice(b"[SEQ=");
        write_number(event.seq, prefix);
        match &event.kind {
            EventKind::Line(stream, line) => {
                prefix.extend_from_slice(match stream {
                    Stream::Stdout => b"][STDOUT] ",
                    Stream::Stderr => b"][STDERR] ",
                });
                out.write_all(prefix)?;
                write_text(line, out)?;
            }
            meta => {
                out.write_all(prefix)?;
                write!(out, "][META] {}", self.meta(meta))?;
            }
        }
        out.write_all(b"\n")
    }

    /// Returns the text of an event other than a line.
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
        for chunk in self.capture.chunks() {
            let chunk = chunk?;
            let from = &mut done[chunk.stream as usize];
            self.capture.bytes(chunk.stream).copy(*from, *from + chunk.length, out)?;
            *from += chunk.length;
        }
        Ok(())
    }
}

/// Appends a number in decimal. Faster than `write!`, which would show in the time of a large log.
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

/// Writes a line of any length as the ledger has it; [`ledger_text`] does the same for a line in memory.
fn write_text(line: &Line<'_>, out: &mut impl Write) -> io::Result<()> {
    if line.is_utf8()? && !line.starts_with(BASE64_PREFIX.as_bytes())? {
        return line.write_to(out);
    }
    out.write_all(BASE64_PREFIX.as_bytes())?;
    line.write_base64(out)
}

/// Returns a line as the ledger has it: the text, or [`BASE64_PREFIX`] and the bytes in base64.
pub(crate) fn ledger_text(line: &[u8]) -> String {
    match str::from_utf8(line) {
        Ok(text) if !text.starts_with(BASE64_PREFIX) => text.to_owned(),
        _ => format!("{BASE64_PREFIX}{}", STANDARD.encode(line)),
    }
}
