//! Parses a log with sections and a ledger. Both must have the same lines; otherwise the log was damaged.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use memchr::memchr_iter;
use memchr::memmem;

use super::assemble::assemble;
use super::error::{ErrorAtLine, LineError};
use super::event::{EndDetails, Origin, ParsedEvent};
use super::record_file::{ParsedRecord, RecordFormat};
use crate::capture::Stream;
use crate::record::{BASE64_PREFIX, LEDGER_BEGIN, LEDGER_END, ledger_text, section_header};

/// Parses a whole log.
pub(super) fn parse(log: &[u8]) -> Result<ParsedRecord, ErrorAtLine> {
    // The command's output has a prefix on each line of the ledger, so it cannot imitate the last marker.
    let begin = memmem::rfind(log, LEDGER_BEGIN).ok_or_else(|| (lines(log).count().max(1), LineError::NoLedger))?;
    let (sections, ledger) = (&log[..=begin], &log[begin + LEDGER_BEGIN.len()..]);
    let marker_line = memchr_iter(b'\n', sections).count() + 1;
    let record = assemble(RecordFormat::Log, parse_ledger(ledger, marker_line)?)?;
    compare_sections(sections, &record)?;
    Ok(record)
}

/// Splits a text into lines, each with its newline.
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
        expect(&|text| text == b"\n")?;
    }
    lines.next().map_or(Ok(()), |(line, _)| Err((line, LineError::SectionMismatch)))
}
