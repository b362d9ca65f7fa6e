//! The tool `search`: lines that match a regular expression, in the order of their paths.

use std::time::{Duration, Instant};

use counterproof_artifact::one_line;
use counterproof_safe_run::Cancellation;
use regex::bytes::{Regex, RegexBuilder};

use super::arguments::Arguments;
use super::file_tools::truncated;
use super::shell::MAX_OUTPUT_CHARS;
use super::toolbox::{Done, Failed};
use super::workspace_files::{EntryKind, Links, WorkspaceFiles};

/// Folders with files that are made from others, or that come from elsewhere. They are searched only if `path` leads into them.
const SKIPPED: [&str; 16] = [
    "node_modules",
    "target",
    "__pycache__",
    ".venv",
    "venv",
    ".tox",
    ".nox",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".gradle",
    ".next",
    ".nuxt",
    ".cache",
    ".hg",
    ".svn",
];

const MAX_MATCHES: usize = 1000;
const MAX_LINE_CHARS: usize = 300;
/// A larger file is data, and not source.
const MAX_SEARCHED_FILE: usize = 4 << 20;
const MAX_SEARCHED_BYTES: usize = 512 << 20;
/// Only an expensive expression takes as long.
const MAX_TIME: Duration = Duration::from_secs(30);
const MAX_REGEX_BYTES: usize = 4 << 20;

pub(super) fn search(files: &WorkspaceFiles, arguments: &Arguments, cancel: &Cancellation) -> Result<Done, Failed> {
    let (pattern, path) = (arguments.text("pattern")?, arguments.optional_text("path")?.unwrap_or("."));
    let regex = RegexBuilder::new(pattern).size_limit(MAX_REGEX_BYTES).dfa_size_limit(MAX_REGEX_BYTES).build();
    let regex = regex.map_err(|error| Failed::new(format!("invalid regular expression: {error}")))?;
    let kind = files.kind(path)?;
    if kind == EntryKind::Other {
        return Err(Failed::new(format!("`{path}` is neither a file nor a folder")));
    }
    let mut search = Search { regex, lines: Vec::new(), bytes: 0, end: Instant::now() + MAX_TIME };
    let mut pending = vec![(files.relative(path)?, kind)];
    let mut stopped = None;
    while let Some((path, kind)) = pending.pop() {
        if cancel.is_cancelled() {
            return Err(Failed::interrupted("the search was interrupted"));
        }
        // The empty path is the workspace.
        let named = if path.is_empty() { "." } else { &path };
        if kind == EntryKind::File {
            // A file that cannot be read has no matches, and must not hide those of the others.
            let Ok(bytes) = files.read(named, Links::Follow) else { continue };
            stopped = search.file(&path, &bytes);
        } else if let Ok(entries) = files.entries(named) {
            let is_searched =
                |(name, kind): &(String, EntryKind)| *kind == EntryKind::File || !SKIPPED.contains(&&**name);
            let below = |(name, kind): (String, EntryKind)| match &*path {
                "" => (name, kind),
                path => (format!("{path}/{name}"), kind),
            };
            pending.extend(entries.into_iter().filter(is_searched).map(below).rev());
        }
        if stopped.is_some() {
            break;
        }
    }
    Ok(search.finish(stopped.as_deref()))
}

struct Search {
    regex: Regex,
    lines: Vec<String>,
    bytes: usize,
    end: Instant,
}

impl Search {
    /// Searches a file. Returns why no further file is searched.
    fn file(&mut self, path: &str, bytes: &[u8]) -> Option<String> {
        if bytes.len() > MAX_SEARCHED_FILE || bytes.contains(&0) {
            return None;
        }
        self.bytes += bytes.len();
        for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if !self.regex.is_match(line) {
                continue;
            }
            if self.lines.len() == MAX_MATCHES {
                return Some(format!("Stopped after {MAX_MATCHES} lines. Use a narrower pattern or path."));
            }
            let mut text = String::from_utf8_lossy(line).into_owned();
            if let Some((end, _)) = text.char_indices().nth(MAX_LINE_CHARS) {
                text.truncate(end);
                text.push('…');
            }
            // A line feed in a name must not look like a match in another file.
            self.lines.push(format!("{}:{}:{text}", one_line(path, usize::MAX), index + 1));
        }
        if self.bytes > MAX_SEARCHED_BYTES {
            return Some(format!("Stopped after {} MiB. Use a narrower path.", MAX_SEARCHED_BYTES >> 20));
        }
        if Instant::now() > self.end {
            return Some("Stopped, because the search took too long. Use a narrower pattern or path.".to_owned());
        }
        None
    }

    fn finish(self, stopped: Option<&str>) -> Done {
        if self.lines.is_empty() && stopped.is_none() {
            return Done::text("no matches".to_owned());
        }
        let mut content = self.lines.join("\n");
        let (mut message, cut) = truncated(&content, MAX_OUTPUT_CHARS);
        if let Some(stopped) = stopped {
            let note = format!("\n[{stopped}]");
            content.push_str(&note);
            message.push_str(&note);
        }
        Done { content, message, is_truncated: cut || stopped.is_some(), ..Done::default() }
    }
}
