//! A log with split sections and a ledger. The two tell the same, or else the log was damaged.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use memchr::memchr_iter;
use memchr::memmem;

use super::parsed_record::{At, EndDetails, RecordKind, Recorded, Source, Told, Wrong, assemble};
use crate::capture::Stream;
use crate::record::{BASE64, BEGIN, END, header, text_of};

/// The record of a log.
pub(super) fn parse(log: &[u8]) -> Result<Recorded, At> {
    // What a command prints stands behind a prefix in the ledger, so nothing behind the last marker can pass for it.
    let begin = memmem::rfind(log, BEGIN).ok_or_else(|| (split(log).count().max(1), Wrong::NoLedger))?;
    let (sections, ledger) = (&log[..=begin], &log[begin + BEGIN.len()..]);
    let above = memchr_iter(b'\n', sections).count() + 1;
    let recorded = assemble(RecordKind::Log, events(ledger, above)?)?;
    hold(sections, &recorded)?;
    Ok(recorded)
}

/// The lines of a text, each with its end.
fn split(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|byte| *byte == b'\n')
}

/// Every event of the ledger, which stands below so many lines.
fn events(ledger: &[u8], above: usize) -> Result<Vec<Told>, At> {
    let mut events = Vec::new();
    let mut lines = (above + 1..).zip(split(ledger));
    while let Some((line, text)) = lines.next() {
        if text == END {
            return lines.next().map_or(Ok(events), |(line, _)| Err((line, Wrong::Beyond)));
        }
        events.push(event(line, text).map_err(|wrong| (line, wrong))?);
    }
    Err((above + events.len(), Wrong::NoExit))
}

fn event(line: usize, text: &[u8]) -> Result<Told, Wrong> {
    let text = text.strip_suffix(b"\n").and_then(|text| str::from_utf8(text).ok()).ok_or(Wrong::NoEvent)?;
    let parts = || {
        let (seq, rest) = text.strip_prefix("[SEQ=")?.split_once("][")?;
        let (source, text) = rest.split_once("] ")?;
        Some((seq.parse().ok()?, Source::of(source)?, text))
    };
    let (seq, source, text) = parts().ok_or(Wrong::NoEvent)?;
    let encoded = text.strip_prefix(BASE64).filter(|_| source != Source::Meta);
    if encoded.is_some_and(|encoded| STANDARD.decode(encoded).is_err()) {
        return Err(Wrong::Base64);
    }
    Ok(Told { line, seq, source, text: text.to_owned(), started_at: None, at: None, end: EndDetails::default() })
}

/// Holds the sections against the ledger: the same lines, and nothing else.
fn hold(sections: &[u8], recorded: &Recorded) -> Result<(), At> {
    let mut lines = (1..).zip(split(sections));
    let mut last = 1;
    let mut expect = |is_so: &dyn Fn(&[u8]) -> bool| {
        let (line, text) = lines.next().unwrap_or((last + 1, b""));
        last = line;
        if is_so(text) { Ok(()) } else { Err((line, Wrong::Section)) }
    };
    for (stream, told) in [(Stream::Stdout, &recorded.stdout), (Stream::Stderr, &recorded.stderr)] {
        expect(&|text| text == header(stream))?;
        for told in told {
            expect(&|text| {
                let text = text.strip_suffix(b"\n").unwrap_or(text);
                // The last line of a stream may end with a carriage return that belongs to it.
                text_of(text) == *told || text.strip_suffix(b"\r").is_some_and(|text| text_of(text) == *told)
            })?;
        }
        expect(&|text| text == b"\n")?;
    }
    lines.next().map_or(Ok(()), |(line, _)| Err((line, Wrong::Section)))
}
