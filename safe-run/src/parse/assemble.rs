//! Builds a record from its events.

use super::error::{ErrorAtLine, LineError};
use super::event::{EXIT_PREFIX, Origin, ParsedEvent, START_PREFIX};
use super::record_file::{ParsedRecord, RecordFormat};

/// Checks the order of the events and collects them into a record.
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

/// Returns the text after `prefix` if this is a META event with the prefix.
fn meta_text<'a>(event: &'a ParsedEvent, prefix: &str) -> Option<&'a str> {
    event.text.strip_prefix(prefix).filter(|_| event.origin == Origin::Meta)
}
