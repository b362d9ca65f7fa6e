//! Reads the records of an export.

use std::fs;
use std::io;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{CaseId, CaseIds};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::ExportError;
use super::case_id::derive_case_id;
use crate::parse::{ParsedRecord, ReadError, RecordFormat};

/// The record files of one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The log, or the file of events.
    pub record: Utf8PathBuf,
    /// The file of events that belongs to a log.
    pub events: Option<Utf8PathBuf>,
    /// The case id; `None` derives it from the command.
    pub case_id: Option<CaseId>,
}

/// A record with its case id and the bytes of its files.
pub(super) struct RecordedCase {
    pub(super) case_id: CaseId,
    pub(super) record: ParsedRecord,
    /// When the record was written; used if the record has no times.
    written_at: Timestamp,
    /// The bytes of each file, with the name of its kind: `log` or `events`.
    pub(super) files: Vec<(&'static str, Vec<u8>)>,
}

impl RecordedCase {
    /// Reads the files of one command and reserves its case id.
    pub(super) fn read(source: &Source, case_ids: &mut CaseIds) -> Result<Self, ExportError> {
        // Each file is read only once: a pipe has no second read, and a file could change between two reads.
        let (mut record, bytes) = ParsedRecord::read_with_bytes(&source.record)?;
        let name = match record.format {
            RecordFormat::Log => "log",
            RecordFormat::JsonLines => "events",
        };
        let mut files = vec![(name, bytes)];
        if let Some(events) = &source.events {
            let (from_events, bytes) = ParsedRecord::read_with_bytes(events)?;
            if let Some(difference) = difference(&record, &from_events) {
                return Err(ExportError::Mismatch {
                    record: source.record.clone(),
                    events: events.clone(),
                    difference,
                });
            }
            (record.times, record.end) = (from_events.times, from_events.end);
            files.push(("events", bytes));
        }
        let case_id = match &source.case_id {
            Some(id) if !case_ids.reserve(id) => return Err(ExportError::DuplicateCaseId(id.clone())),
            Some(id) => id.clone(),
            None => derive_case_id(case_ids, &record.command)?,
        };
        let written_at = written_at(&source.record)
            .map_err(|error| ReadError::Read { path: source.record.clone(), source: error })?;
        Ok(Self { case_id, record, written_at, files })
    }

    pub(super) fn started_at(&self) -> Timestamp {
        self.record.times.map_or(self.written_at, |(started, _)| started)
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.record.times.map_or(Duration::ZERO, |(_, elapsed)| elapsed)
    }
}

/// Returns the first difference between a log and a file of events.
fn difference(log: &ParsedRecord, events: &ParsedRecord) -> Option<&'static str> {
    [
        (log.format != RecordFormat::Log, "the first file is not a log"),
        (events.format != RecordFormat::JsonLines, "the second file is not a file of events"),
        (log.command != events.command, "the command differs"),
        (log.exit_code != events.exit_code, "the exit code differs"),
        (log.stdout != events.stdout, "standard output differs"),
        (log.stderr != events.stderr, "standard error differs"),
        (log.notes != events.notes, "the messages of the recorder differ"),
    ]
    .into_iter()
    .find_map(|(differs, what)| differs.then_some(what))
}

/// Returns when a log was written: the time in its name, or else the modification time of the file.
fn written_at(path: &Utf8Path) -> io::Result<Timestamp> {
    let name = path.file_name().unwrap_or_default();
    let parse = |format: &str, text: Option<&str>| DateTime::strptime(format, text?).ok();
    let default_style = name.strip_prefix("safe-run-").and_then(|rest| rest.get(..15));
    let time = parse("%Y%m%d-%H%M%S", default_style).or_else(|| parse("%Y%m%dT%H%M%SZ", name.get(..16)));
    match time.and_then(|time| time.to_zoned(TimeZone::UTC).ok()) {
        Some(time) => Ok(time.timestamp()),
        None => Timestamp::try_from(fs::metadata(path)?.modified()?).map_err(io::Error::other),
    }
}
