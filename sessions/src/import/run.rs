//! Imports files: finds them, reads them one source at a time, and passes on their sessions.

use std::collections::HashMap;

use camino::Utf8PathBuf;
use counterproof_redaction::Redactor;
use jiff::Timestamp;

use super::claude_code::{self, SeenLines};
use super::codex::{self, SeenThreads};
use super::imported::ImportedSession;
use super::lines::Masker;
use super::report::ImportReport;
use super::sources::{Format, ReadResult, Source, SourceError, find};
use super::{atif, spans};
use crate::event::EventId;

/// How files are imported.
#[derive(Debug)]
pub struct ImportOptions<'a> {
    /// The format of all files. Without it, that of each file is recognized.
    pub format: Option<Format>,
    /// Sessions that ended before this time are left out.
    pub since: Option<Timestamp>,
    /// Masks secrets before anything else sees a line.
    pub redactor: &'a Redactor,
}

/// How far an import is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImportProgress {
    pub files_read: usize,
    pub files: usize,
    pub sessions: usize,
}

/// Why an import ended. Problems with one of several files are in the report.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The receiver of a session failed.
    #[error("failed to store an imported session")]
    Receiver(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Receives the sessions of an import. A parent comes before its forks.
pub type Receiver<'a> = dyn FnMut(ImportedSession) -> Result<(), Box<dyn std::error::Error + Send + Sync>> + 'a;

/// Imports files, and the files of folders.
///
/// Records have ids that follow from the ids in the files: a file that is imported again, or after it grew, has the same ids
/// for the same records. A record that several sessions of an import have is only in the first one.
pub fn import(
    paths: &[Utf8PathBuf],
    options: &ImportOptions<'_>,
    receive: &mut Receiver<'_>,
    progress: &mut dyn FnMut(ImportProgress),
) -> Result<ImportReport, ImportError> {
    let found = find(paths, options.format)?;
    let mut report =
        ImportReport { unrecognized: found.unrecognized, problems: found.problems, ..ImportReport::default() };
    let files = found.sources.iter().map(Source::files).sum();
    let mut seen = Seen::default();
    let mut state = ImportProgress { files_read: 0, files, sessions: 0 };
    progress(state);
    for source in found.sources {
        let mut masker = Masker::new(options.redactor);
        let result = match &source {
            Source::ClaudeCode(transcript) => claude_code::read(transcript, &mut seen.lines, &mut masker),
            Source::Codex(thread) => codex::read(thread, &mut seen.threads, &mut masker),
            Source::Document(path, Format::Atif) => atif::read(path, &mut masker),
            Source::Document(path, format) => spans::read(path, *format, &mut masker),
        };
        state.files_read += source.files();
        add(result, masker.found, options.since, &mut seen, &mut report, receive)?;
        state.sessions = report.sessions.len();
        progress(state);
    }
    Ok(report)
}

/// What earlier sources of the import had.
#[derive(Debug, Default)]
struct Seen {
    lines: SeenLines,
    threads: SeenThreads,
    /// The index of the session of each record.
    events: HashMap<EventId, usize>,
    sessions: HashMap<String, usize>,
}

fn add(
    result: ReadResult,
    secrets: u64,
    since: Option<Timestamp>,
    seen: &mut Seen,
    report: &mut ImportReport,
    receive: &mut Receiver<'_>,
) -> Result<(), ImportError> {
    report.problems.extend(result.problems);
    let is_recent = |session: &ImportedSession| {
        let ended = session.head.ended_at.unwrap_or(session.head.started_at);
        since.is_none_or(|since| ended >= since)
    };
    if !result.sessions.is_empty() && !result.sessions.iter().any(is_recent) {
        return Ok(());
    }
    report.files += result.files;
    report.add(result.tally);
    let mut secrets = Some(secrets);
    for mut session in result.sessions.into_iter().filter(is_recent) {
        // Lines are masked before they are assigned to the sessions of a file.
        session.secrets = secrets.take().unwrap_or(0);
        report.secrets.found += session.secrets;
        report.secrets.sessions += u64::from(session.secrets > 0);
        let number = seen.sessions.len();
        let number = *seen.sessions.entry(session.head.session_id.clone()).or_insert(number);
        session.remove(|id| *seen.events.entry(id.clone()).or_insert(number) != number);
        if !report.sessions.contains(&session.head.session_id) {
            report.sessions.push(session.head.session_id.clone());
        }
        receive(session).map_err(ImportError::Receiver)?;
    }
    Ok(())
}
