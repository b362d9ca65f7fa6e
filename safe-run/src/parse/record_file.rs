//! Reads a record from its file: detects the format, parses a log, and assembles the events.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use camino::Utf8Path;
use counterproof_store::read_file;
use jiff::Timestamp;
use memchr::{memchr_iter, memmem};

use super::error::{ErrorAtLine, LineError, ReadError};
use super::json_lines;
use crate::capture::Stream;
use crate::record::{BASE64_PREFIX, LEDGER_BEGIN, LEDGER_END, ledger_text, section_header};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedRecord {
    pub format: RecordFormat,
    /// The command as one line for `sh`.
    pub command: String,
    /// The start time and the elapsed time; `None` for a log, which has no times.
    pub times: Option<(Timestamp, Duration)>,
    /// The exit code of safe-run.
    pub exit_code: i32,
    /// Further facts about the end; empty for a log.
    pub end: EndDetails,
    /// The lines of standard output without their line ends, as the ledger has them: text, or `base64:` and the bytes.
    pub stdout: Vec<String>,
    /// The lines of standard error, in the same form.
    pub stderr: Vec<String>,
    /// Messages of the recorder between the start and the exit, such as that the record is incomplete.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordFormat {
    Log,
    JsonLines,
}

impl ParsedRecord {
    /// Reads a log with a ledger, or a file of events. The whole file is held in memory.
    pub fn read(path: &Utf8Path) -> Result<Self, ReadError> {
        Self::read_with_bytes(path).map(|(record, _)| record)
    }

    /// Reads a record and returns the bytes of the file too, because a pipe can be read only once.
    pub fn read_with_bytes(path: &Utf8Path) -> Result<(Self, Vec<u8>), ReadError> {
        let bytes = read_file::read_argument(path, read_file::MAX_LARGE_BYTES)
            .map_err(|source| ReadError::Read { path: path.to_owned(), source })?;
        let record = Self::parse(&bytes);
        let record = record.map_err(|(line, error)| ReadError::Invalid { path: path.to_owned(), line, error })?;
        Ok((record, bytes))
    }

    pub(super) fn parse(bytes: &[u8]) -> Result<Self, ErrorAtLine> {
        // A log begins with the header of a section, so the first byte decides.
        if bytes.starts_with(b"{") {
            assemble(RecordFormat::JsonLines, json_lines::parse(bytes)?)
        } else {
            parse(bytes)
        }
    }
}

pub(super) fn parse(log: &[u8]) -> Result<ParsedRecord, ErrorAtLine> {
    // The command's output has a prefix on each line of the ledger, so it cannot imitate the last marker.
    let begin = memmem::rfind(log, LEDGER_BEGIN).ok_or_else(|| (lines(log).count().max(1), LineError::NoLedger))?;
    let (sections, ledger) = (&log[..=begin], &log[begin + LEDGER_BEGIN.len()..]);
    let marker_line = memchr_iter(b'\n', sections).count() + 1;
    let record = assemble(RecordFormat::Log, parse_ledger(ledger, marker_line)?)?;
    compare_sections(sections, &record)?;
    Ok(record)
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|byte| *byte == b'\n')
}

/// Parses the events of the ledger, which begins after the line `marker_line`.
fn parse_ledger(ledger: &[u8], marker_line: usize) -> Result<Vec<ParsedEvent>, ErrorAtLine> {
    let mut events = Vec::new();
    let mut lines = (marker_line + 1..).zip(lines(ledger));
    while let Some((line, text)) = lines.next() {
        if text == LEDGER_END {
            return lines.next().map_or(Ok(events), |(line, _)| Err((line, LineError::TrailingText)));
        }
        events.push(parse_event(line, text).map_err(|error| (line, error))?);
    }
    Err((marker_line + events.len(), LineError::NoExit))
}

fn parse_event(line: usize, text: &[u8]) -> Result<ParsedEvent, LineError> {
    let text = text.strip_suffix(b"\n").and_then(|text| str::from_utf8(text).ok()).ok_or(LineError::NotAnEvent)?;
    let (seq, origin, text) = split_event(text).ok_or(LineError::NotAnEvent)?;
    let encoded = text.strip_prefix(BASE64_PREFIX).filter(|_| origin != Origin::Meta);
    if encoded.is_some_and(|encoded| STANDARD.decode(encoded).is_err()) {
        return Err(LineError::Base64);
    }
    let (text, end) = (text.to_owned(), EndDetails::default());
    Ok(ParsedEvent { line, seq, origin, text, started_at: None, at: None, end })
}

/// Splits `[SEQ=<number>][<stream>] <text>`.
fn split_event(text: &str) -> Option<(u64, Origin, &str)> {
    let (seq, rest) = text.strip_prefix("[SEQ=")?.split_once("][")?;
    let (origin, text) = rest.split_once("] ")?;
    Some((seq.parse().ok()?, Origin::parse(origin)?, text))
}

/// Checks that the sections have exactly the lines of the ledger.
fn compare_sections(sections: &[u8], record: &ParsedRecord) -> Result<(), ErrorAtLine> {
    let mut lines = (1..).zip(lines(sections));
    let mut last = 1;
    let mut expect = |matches: &dyn Fn(&[u8]) -> bool| {
        let (line, text) = lines.next().unwrap_or((last + 1, b""));
        last = line;
        if matches(text) { Ok(()) } else { Err((line, LineError::SectionMismatch)) }
    };
    for (stream, expected) in [(Stream::Stdout, &record.stdout), (Stream::Stderr, &record.stderr)] {
        expect(&|text| text == section_header(stream))?;
        for expected in expected {
            expect(&|text| {
                let text = text.strip_suffix(b"\n").unwrap_or(text);
                // The ledger drops the carriage return of CRLF, but keeps one at the very end of a stream.
                let without_cr = text.strip_suffix(b"\r");
                ledger_text(text) == *expected || without_cr.is_some_and(|text| ledger_text(text) == *expected)
            })?;
        }
        // Every section ends with an empty line, which is not a line of output.
        expect(&|text| text == b"\n")?;
    }
    lines.next().map_or(Ok(()), |(line, _)| Err((line, LineError::SectionMismatch)))
}

pub(super) fn assemble(format: RecordFormat, events: Vec<ParsedEvent>) -> Result<ParsedRecord, ErrorAtLine> {
    for (expected, event) in (1..).zip(&events) {
        if event.seq != expected {
            return Err((event.line, LineError::SequenceNumber { expected, found: event.seq }));
        }
    }
    let (first, last) = (events.first(), events.last());
    let command = first.and_then(|event| meta_text(event, START_PREFIX)?.strip_suffix('"'));
    let command = command.ok_or((first.map_or(1, |event| event.line), LineError::NoStart))?.to_owned();
    let exit_code = last.and_then(|event| meta_text(event, EXIT_PREFIX)?.parse().ok());
    let exit_code = exit_code.ok_or((last.map_or(1, |event| event.line), LineError::NoExit))?;
    // Both or none: a start without an end gives no duration.
    let times = first.and_then(|event| event.started_at).zip(last.and_then(|event| event.at));
    let end = last.map(|event| event.end).unwrap_or_default();
    let (stdout, stderr, notes) = (Vec::new(), Vec::new(), Vec::new());
    let mut record = ParsedRecord { format, command, times, exit_code, end, stdout, stderr, notes };
    // There is at least one event here: without one, the start would be missing.
    let before_exit = events.len() - 1;
    for event in events.into_iter().take(before_exit).skip(1) {
        match event.origin {
            Origin::Stdout => record.stdout.push(event.text),
            Origin::Stderr => record.stderr.push(event.text),
            Origin::Meta => record.notes.push(event.text),
        }
    }
    Ok(record)
}

fn meta_text<'a>(event: &'a ParsedEvent, prefix: &str) -> Option<&'a str> {
    event.text.strip_prefix(prefix).filter(|_| event.origin == Origin::Meta)
}

/// The text of the first event begins with this.
pub(super) const START_PREFIX: &str = "safe-run start: cmd=\"";

/// The text of the last event begins with this.
pub(super) const EXIT_PREFIX: &str = "safe-run exit: code=";

/// What the last event of a file of events states besides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndDetails {
    pub signal: Option<i32>,
    /// The signal that safe-run received and forwarded.
    pub aborted_by: Option<i32>,
    /// Number of processes that the command left behind; `None` if it left none.
    pub left_behind: Option<u32>,
}

#[derive(Debug)]
pub(super) struct ParsedEvent {
    pub(super) line: usize,
    pub(super) seq: u64,
    pub(super) origin: Origin,
    /// The text as the ledger has it.
    pub(super) text: String,
    pub(super) started_at: Option<Timestamp>,
    pub(super) at: Option<Duration>,
    pub(super) end: EndDetails,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    Stdout,
    Stderr,
    Meta,
}

impl Origin {
    pub(super) fn parse(name: &str) -> Option<Self> {
        match name {
            "STDOUT" => Some(Origin::Stdout),
            "STDERR" => Some(Origin::Stderr),
            "META" => Some(Origin::Meta),
            _ => None,
        }
    }
}
