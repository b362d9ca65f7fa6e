//! Finds the files of an import, their formats, and the order in which they are read.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use walkdir::WalkDir;

use super::claude_code::Transcript;
use super::imported::{ImportedSession, time};
use super::lines::{Lines, MAX_DOCUMENT_BYTES, MAX_SESSION_BYTES, Masker, parse};
use super::report::{FileProblem, Tally};
use crate::session::Origin;

/// The ends of the names of files that are read in a folder.
const EXTENSIONS: [&str; 4] = [".jsonl", ".jsonl.zst", ".ndjson", ".json"];

/// How many lines of a file are examined for its format.
const EXAMINED_LINES: usize = 200;

/// How many bytes of a file are examined for its format.
const EXAMINED_BYTES: u64 = 8 << 20;

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

/// A path that cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    #[error("failed to read `{path}`")]
    Read { path: Utf8PathBuf, source: io::Error },
    #[error("`{path}` is in none of the formats that can be imported")]
    UnknownFormat { path: Utf8PathBuf },
}

/// Files that are read together.
#[derive(Debug)]
pub(super) enum Source {
    ClaudeCode(Transcript),
    /// The files of one thread, in their order.
    Codex(CodexThread),
    Document(Utf8PathBuf, Format),
}

#[derive(Debug)]
pub(super) struct CodexThread {
    pub(super) files: Vec<Utf8PathBuf>,
    pub(super) id: Option<String>,
    /// True if another thread of the import is a fork of this one.
    pub(super) has_forks: bool,
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

/// What the start of a file states.
#[derive(Debug, Default)]
struct Examined {
    format: Option<Format>,
    session_id: Option<String>,
    parent: Option<String>,
    started: Option<Timestamp>,
    is_sidechain: bool,
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

/// The sources of an import, and the files of folders that are in none of the formats.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) sources: Vec<Source>,
    pub(super) unrecognized: Vec<Utf8PathBuf>,
    pub(super) problems: Vec<FileProblem>,
}

/// Finds the files of these paths, and orders them: parents before their forks.
pub(super) fn find(paths: &[Utf8PathBuf], format: Option<Format>) -> Result<Found, SourceError> {
    let mut found = Found::default();
    let mut files: BTreeMap<Utf8PathBuf, Examined> = BTreeMap::new();
    for path in paths {
        let metadata = path.metadata().map_err(|source| SourceError::Read { path: path.clone(), source })?;
        if metadata.is_dir() {
            for file in files_below(path, &mut found.problems) {
                match examine(&file, format) {
                    Ok(examined) if examined.format.is_some() => _ = files.insert(file, examined),
                    Ok(_) => found.unrecognized.push(file),
                    Err(error) => found.problems.push(FileProblem { path: file, message: error.to_string() }),
                }
            }
            continue;
        }
        let examined = examine(path, format).map_err(|source| SourceError::Read { path: path.clone(), source })?;
        if examined.format.is_none() {
            return Err(SourceError::UnknownFormat { path: path.clone() });
        }
        if examined.format == Some(Format::ClaudeCode) {
            let agents = path.with_extension("").join("subagents");
            for file in files_below(&agents, &mut Vec::new()) {
                files.entry(file.clone()).or_insert(examine(&file, Some(Format::ClaudeCode)).unwrap_or_default());
            }
        }
        files.insert(path.clone(), examined);
    }
    let mut wanted: Vec<Utf8PathBuf> = files.keys().cloned().collect();
    remove_compressed(&mut wanted);
    files.retain(|path, _| wanted.binary_search(path).is_ok());
    found.sources = ordered(group(files));
    Ok(found)
}

fn files_below(folder: &Utf8Path, problems: &mut Vec<FileProblem>) -> Vec<Utf8PathBuf> {
    let mut files = Vec::new();
    for entry in WalkDir::new(folder).sort_by_file_name() {
        match entry {
            Ok(entry) if entry.file_type().is_file() => {
                let Ok(path) = Utf8PathBuf::from_path_buf(entry.into_path()) else { continue };
                if EXTENSIONS.iter().any(|end| path.as_str().ends_with(end)) {
                    files.push(path);
                }
            }
            Ok(_) => {}
            Err(error) => problems.push(FileProblem { path: folder.to_owned(), message: error.to_string() }),
        }
    }
    remove_compressed(&mut files);
    files
}

/// Removes compressed files that are there uncompressed as well: a session goes on in that file.
fn remove_compressed(files: &mut Vec<Utf8PathBuf>) {
    let plain: HashSet<Utf8PathBuf> = files.iter().filter(|path| path.extension() != Some("zst")).cloned().collect();
    files.retain(|path| path.extension() != Some("zst") || !plain.contains(&path.with_extension("")));
}

/// Reads the start of a file.
fn examine(path: &Utf8Path, format: Option<Format>) -> io::Result<Examined> {
    let mut examined = Examined { format, ..Examined::default() };
    let mut lines = Lines::open(path)?;
    let mut bytes = 0;
    for _ in 0..EXAMINED_LINES {
        // An error further on is reported when the file is read.
        let Ok(Some(line)) = lines.next() else { break };
        bytes += line.length;
        if let Some(value) = parse(&line.text) {
            let wanted = examined.format.or_else(|| detect(&value));
            examined.format = wanted;
            examined.add(&value);
        } else if bytes == line.length && !path.as_str().ends_with(".zst") && format.is_none() {
            // A document of several lines.
            let document = path.metadata().is_ok_and(|found| found.len() <= MAX_DOCUMENT_BYTES);
            if document && path.extension() != Some("jsonl") {
                let text = counterproof_store::read_file::read(path, MAX_DOCUMENT_BYTES)?;
                let first = serde_json::Deserializer::from_slice(&text).into_iter::<Value>().next();
                if let Some(Ok(value)) = first {
                    examined.format = detect(&value);
                    break;
                }
            }
        }
        let is_complete = examined.session_id.is_some() && examined.started.is_some();
        if bytes > EXAMINED_BYTES || examined.format.is_some() && is_complete {
            break;
        }
    }
    Ok(examined)
}

impl Examined {
    fn add(&mut self, value: &Value) {
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        match self.format {
            Some(Format::ClaudeCode) => {
                self.session_id = self.session_id.take().or_else(|| text("/sessionId"));
                self.parent = self.parent.take().or_else(|| text("/forkedFrom/sessionId"));
                self.is_sidechain |= value.get("isSidechain").and_then(Value::as_bool).unwrap_or(false);
            }
            Some(Format::Codex) if self.session_id.is_none() => {
                let payload = value.get("payload").unwrap_or(value);
                let text = |name: &str| payload.get(name).and_then(Value::as_str).map(str::to_owned);
                if value.get("type").is_none_or(|kind| kind == "session_meta") {
                    self.session_id = text("id").or_else(|| text("session_id"));
                    self.parent = text("forked_from_id").or_else(|| text("parent_thread_id"));
                    self.started = text("timestamp").as_deref().and_then(time);
                }
            }
            _ => {}
        }
        self.started = self.started.or_else(|| text("/timestamp").as_deref().and_then(time));
    }
}

/// Recognizes the format of a line or document.
fn detect(value: &Value) -> Option<Format> {
    let has = |name: &str| value.get(name).is_some();
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    let kind = text("type");
    if text("schema_version").is_some_and(|version| version.starts_with("ATIF")) {
        return Some(Format::Atif);
    }
    let is_trace = |value: &Value| {
        ["resourceSpans", "resource_spans"].iter().any(|name| value.get(name).is_some()) || super::spans::is_span(value)
    };
    if is_trace(value) || value.get(0).is_some_and(is_trace) {
        return Some(super::spans::detect(value));
    }
    if has("payload") && kind.is_some_and(|kind| super::codex::LINE_TYPES.contains(&kind)) {
        return Some(Format::Codex);
    }
    // The first line of older files of Codex.
    if kind.is_none() && has("id") && has("timestamp") && has("instructions") {
        return Some(Format::Codex);
    }
    let is_claude = kind.is_some()
        && (has("sessionId") || has("parentUuid") || has("leafUuid") || has("uuid") && has("message"))
        || kind == Some("file-history-snapshot");
    is_claude.then_some(Format::ClaudeCode)
}

/// A source with what its order depends on.
struct Group {
    source: Source,
    session_id: Option<String>,
    parent: Option<String>,
    times: (Option<Timestamp>, Option<Timestamp>),
}

fn group(files: BTreeMap<Utf8PathBuf, Examined>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut threads: HashMap<String, usize> = HashMap::new();
    let mut agents = Vec::new();
    for (path, examined) in files {
        let Examined { format, session_id, parent, started, is_sidechain } = examined;
        let source = match format {
            Some(Format::ClaudeCode) if is_agent_file(&path, is_sidechain) => {
                agents.push((path, session_id, started));
                continue;
            }
            Some(Format::ClaudeCode) => Source::ClaudeCode(Transcript { main: Some(path.clone()), agents: Vec::new() }),
            Some(Format::Codex) => {
                if let Some(known) = session_id.as_ref().and_then(|id| threads.get(id))
                    && let Source::Codex(thread) = &mut groups[*known].source
                {
                    thread.files.push(path);
                    continue;
                }
                session_id.as_ref().map(|id| threads.insert(id.clone(), groups.len()));
                Source::Codex(CodexThread { files: vec![path.clone()], id: session_id.clone(), has_forks: false })
            }
            Some(format) => Source::Document(path.clone(), format),
            None => continue,
        };
        let ended = matches!(format, Some(Format::ClaudeCode)).then(|| last_time(&path)).flatten();
        groups.push(Group { source, session_id, parent, times: (started, ended) });
    }
    for (path, session_id, started) in agents {
        let folder = path.parent().and_then(Utf8Path::parent);
        let owner = groups.iter_mut().position(|group| match &group.source {
            Source::ClaudeCode(Transcript { main: Some(main), .. }) => {
                Some(main.with_extension("").as_path()) == folder
                    || main.parent() == path.parent() && session_id.is_some() && group.session_id == session_id
            }
            _ => false,
        });
        match owner.map(|owner| &mut groups[owner].source) {
            Some(Source::ClaudeCode(transcript)) => transcript.agents.push(path),
            _ => {
                let source = Source::ClaudeCode(Transcript { main: None, agents: vec![path] });
                groups.push(Group { source, session_id, parent: None, times: (started, None) });
            }
        }
    }
    groups
}

fn is_agent_file(path: &Utf8Path, is_sidechain: bool) -> bool {
    let is_named = path.file_name().is_some_and(|name| name.starts_with("agent-"));
    let is_placed = path.parent().and_then(Utf8Path::file_name) == Some("subagents");
    is_placed || is_named && is_sidechain
}

/// The time of the last line that states one, if it is near the end of the file.
fn last_time(path: &Utf8Path) -> Option<Timestamp> {
    use std::io::{Read, Seek, SeekFrom};

    const END: u64 = 64 << 10;
    let (mut file, length) = counterproof_store::read_file::open(path).ok()?;
    file.seek(SeekFrom::Start(length.saturating_sub(END))).ok()?;
    let mut end = Vec::new();
    file.take(END).read_to_end(&mut end).ok()?;
    let lines = end.rsplit(|byte| *byte == b'\n');
    lines.filter_map(parse).find_map(|line| time(line.get("timestamp")?.as_str()?))
}

/// Orders by time. A parent is before its forks. A fork by copied lines begins with its parent, and ends later.
fn ordered(mut groups: Vec<Group>) -> Vec<Source> {
    groups.sort_by_key(|group| group.times);
    let parents: HashSet<String> = groups.iter().filter_map(|group| group.parent.clone()).collect();
    let index: HashMap<String, usize> =
        groups.iter().enumerate().rev().filter_map(|(at, group)| Some((group.session_id.clone()?, at))).collect();
    let next: Vec<Option<usize>> = groups.iter().map(|group| index.get(group.parent.as_ref()?).copied()).collect();
    let mut order = Vec::new();
    let mut is_placed = vec![false; groups.len()];
    for start in 0..groups.len() {
        let mut waiting = Vec::new();
        let mut at = Some(start);
        while let Some(group) = at.filter(|at| !std::mem::replace(&mut is_placed[*at], true)) {
            waiting.push(group);
            at = next[group];
        }
        order.extend(waiting.into_iter().rev());
    }
    let mut sources: Vec<Option<Source>> = groups.into_iter().map(|group| Some(group.source)).collect();
    let mut ordered: Vec<Source> = order.into_iter().filter_map(|at| sources[at].take()).collect();
    for source in &mut ordered {
        if let Source::Codex(thread) = source {
            thread.has_forks = thread.id.as_ref().is_some_and(|id| parents.contains(id));
        }
    }
    ordered
}
