//! A source of an import: files that are read together, and what was read from them.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::imported::ImportedSession;
use super::lines::{MAX_SESSION_BYTES, Masker};
use super::report::{FileProblem, Tally};
use crate::session::Origin;

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    ClaudeCode,
    Codex,
    Otlp,
    Openinference,
    Atif,
}

impl Format {
    pub const ALL: [Self; 5] = [Self::ClaudeCode, Self::Codex, Self::Otlp, Self::Openinference, Self::Atif];

    pub const fn origin(self) -> Origin {
        match self {
            Self::ClaudeCode => Origin::ClaudeCode,
            Self::Codex => Origin::Codex,
            Self::Otlp => Origin::Otlp,
            Self::Openinference => Origin::Openinference,
            Self::Atif => Origin::Atif,
        }
    }
}

/// Files that are read together.
#[derive(Debug)]
pub(super) enum Source {
    ClaudeCode(Transcript),
    /// The files of one thread, in their order.
    Codex(CodexThread),
    Document(Utf8PathBuf, Format),
}

/// The files of a thread of Codex.
#[derive(Debug)]
pub(super) struct CodexThread {
    pub(super) files: Vec<Utf8PathBuf>,
    pub(super) id: Option<String>,
    /// True if another thread of the import is a fork of this one.
    pub(super) has_forks: bool,
}

/// The files of a session of Claude Code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Transcript {
    /// The file of the session, if there is one.
    pub(super) main: Option<Utf8PathBuf>,
    /// The files of subagents.
    pub(super) agents: Vec<Utf8PathBuf>,
}

impl Source {
    pub(super) fn files(&self) -> usize {
        match self {
            Source::ClaudeCode(transcript) => transcript.agents.len() + usize::from(transcript.main.is_some()),
            Source::Codex(thread) => thread.files.len(),
            Source::Document(..) => 1,
        }
    }
}

/// What was read from one source.
#[derive(Debug)]
pub(super) struct ReadResult {
    pub(super) sessions: Vec<ImportedSession>,
    pub(super) tally: Tally,
    pub(super) problems: Vec<FileProblem>,
    pub(super) files: u64,
    /// The time of a session that states none: when its file was changed.
    pub(super) fallback_time: Timestamp,
}

impl Default for ReadResult {
    fn default() -> Self {
        let (sessions, problems) = (Vec::new(), Vec::new());
        Self { sessions, tally: Tally::default(), problems, files: 0, fallback_time: Timestamp::UNIX_EPOCH }
    }
}

/// Calls `read` for each file. After an error, what was read before counts.
pub(super) fn read_files<'a>(
    files: impl Iterator<Item = &'a Utf8PathBuf>,
    result: &mut ReadResult,
    masker: &mut Masker<'_>,
    mut read: impl FnMut(&Utf8Path, &mut Masker<'_>, &mut u64, &mut Tally) -> io::Result<()>,
) {
    let mut budget = MAX_SESSION_BYTES;
    for path in files {
        let changed = path.metadata().and_then(|found| found.modified()).ok();
        if let Some(changed) = changed.and_then(|changed| Timestamp::try_from(changed).ok()) {
            result.fallback_time = result.fallback_time.max(changed);
        }
        result.files += 1;
        if let Err(error) = read(path, masker, &mut budget, &mut result.tally) {
            result.problems.push(FileProblem { path: path.clone(), message: error.to_string() });
        }
    }
}
