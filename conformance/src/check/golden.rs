//! The outcome of a trial as one document. Golden outputs are such documents, and wrappers are compared through them.
//!
//! Log names are normalized: times, random parts and process ids become placeholders. All other bytes stay. Logs whose names become
//! equal are numbered, so every log stays in the document.

use std::collections::BTreeMap;
use std::io;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use camino::Utf8Path;
use counterproof_store::read_file;
use regex::bytes::Regex;
use serde::{Deserialize, Serialize};

use crate::trial::{FileContents, TrialOutcome};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Golden {
    /// `None` if a signal killed the program.
    pub(crate) exit_code: Option<i32>,
    pub(crate) stdout: GoldenText,
    pub(crate) stderr: GoldenText,
    /// All files after the trial, by normalized path.
    pub(crate) files: BTreeMap<String, GoldenFile>,
}

/// Bytes: text as lines with their line ends, other bytes in base64.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum GoldenText {
    Lines(Vec<String>),
    Base64 { base64: String },
}

/// A file system entry: an archive by its entries, a link by its target, a special file by its kind, any other file by its
/// contents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum GoldenFile {
    Archive { entries: Vec<String> },
    Link { link: String },
    Other { kind: String },
    Contents(GoldenText),
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum GoldenError {
    #[error("{0}")]
    Read(#[from] io::Error),
    #[error("{0}")]
    Format(#[from] serde_json::Error),
}

impl Golden {
    pub(crate) fn read(path: &Utf8Path) -> Result<Self, GoldenError> {
        Ok(serde_json::from_slice(&read_file::read(path, read_file::MAX_DOCUMENT_BYTES)?)?)
    }

    pub(crate) fn with_lf_line_ends(self) -> Self {
        let file = |file: GoldenFile| match file {
            GoldenFile::Contents(text) => GoldenFile::Contents(text.with_lf_line_ends()),
            other @ (GoldenFile::Archive { .. } | GoldenFile::Link { .. } | GoldenFile::Other { .. }) => other,
        };
        Self {
            exit_code: self.exit_code,
            stdout: self.stdout.with_lf_line_ends(),
            stderr: self.stderr.with_lf_line_ends(),
            files: self.files.into_iter().map(|(path, contents)| (path, file(contents))).collect(),
        }
    }

    pub(crate) fn from_outcome(outcome: &TrialOutcome) -> Self {
        let file = |contents: &FileContents| match contents {
            FileContents::Bytes(bytes) => GoldenFile::Contents(GoldenText::from_bytes(bytes)),
            FileContents::Archive(entries) => GoldenFile::Archive { entries: entries.clone() },
            FileContents::Link(target) => GoldenFile::Link { link: normalize(target) },
            FileContents::Special(kind) => GoldenFile::Other { kind: (*kind).to_owned() },
        };
        let files = outcome.after.files.iter().map(|(path, contents)| (normalize(path.as_str()), contents));
        Self {
            exit_code: outcome.exit_code,
            stdout: GoldenText::from_bytes(&outcome.stdout),
            // Messages on standard error name the log; standard output is the command's own.
            stderr: GoldenText::from_bytes(&normalize_bytes(&outcome.stderr)),
            files: numbered(files.collect()).into_iter().map(|(path, contents)| (path, file(contents))).collect(),
        }
    }
}

/// Makes the names unique. Of two files with the same name, the second in the order of contents becomes `NAME (2)`.
fn numbered(mut files: Vec<(String, &FileContents)>) -> BTreeMap<String, &FileContents> {
    // By contents after the name, so that the numbers do not depend on random parts of names.
    files.sort();
    let mut named = BTreeMap::new();
    for (name, contents) in files {
        let later = (2..).map(|number: usize| format!("{name} ({number})"));
        let free = std::iter::once(name.clone()).chain(later).find(|name| !named.contains_key(name));
        named.insert(free.unwrap_or(name), contents);
    }
    named
}

impl GoldenText {
    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => GoldenText::Lines(text.split_inclusive('\n').map(str::to_owned).collect()),
            Err(_) => GoldenText::Base64 { base64: STANDARD.encode(bytes) },
        }
    }

    pub(super) fn text(&self) -> Option<String> {
        match self {
            GoldenText::Lines(lines) => Some(lines.concat()),
            GoldenText::Base64 { .. } => None,
        }
    }

    fn with_lf_line_ends(self) -> Self {
        match self {
            GoldenText::Lines(lines) => {
                GoldenText::Lines(lines.iter().map(|line| line.replace("\r\n", "\n")).collect())
            }
            GoldenText::Base64 { .. } => self,
        }
    }
}

fn normalize(name: &str) -> String {
    // The replacements are ASCII, so the text stays valid UTF-8.
    String::from_utf8_lossy(&normalize_bytes(name.as_bytes())).into_owned()
}

/// Replaces the time, the random part and the process id in log names.
fn normalize_bytes(bytes: &[u8]) -> Vec<u8> {
    #[expect(clippy::expect_used, reason = "the patterns are constants, and a test uses them")]
    static NAMES: LazyLock<[(Regex, &[u8]); 2]> = LazyLock::new(|| {
        let compile = |pattern| Regex::new(pattern).expect("a pattern");
        [
            (compile(r"safe-run-\d{8}-\d{6}-[0-9a-z]+\.log"), b"safe-run-<time>-<random>.log"),
            (compile(r"\d{8}T\d{6}Z-pid\d+-(FAIL|ABORTED)(-\d+)?\.log"), b"<time>-pid<process>-$1.log"),
        ]
    });
    NAMES.iter().fold(bytes.to_owned(), |bytes, (name, plain)| name.replace_all(&bytes, *plain).into_owned())
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LedgerEvent {
    pub(super) seq: u64,
    pub(super) stream: String,
    pub(super) text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum LedgerError {
    #[error("the ledger has no end")]
    NoEnd,
    #[error("`{0}` is not an event")]
    NotAnEvent(String),
}

/// Parses the events of a log. Returns `None` if the log has no ledger.
pub(super) fn parse(log: &str) -> Option<Result<Vec<LedgerEvent>, LedgerError>> {
    // The last marker counts: the sections can contain the same line, but every line of output in the ledger has a prefix.
    let (_, ledger) = log.rsplit_once("\n--- BEGIN EVENTS ---\n")?;
    Some(match ledger.strip_suffix("--- END EVENTS ---\n") {
        None => Err(LedgerError::NoEnd),
        Some(ledger) => ledger.split_terminator('\n').map(parse_event).collect(),
    })
}

fn parse_event(line: &str) -> Result<LedgerEvent, LedgerError> {
    let parts = line.strip_prefix("[SEQ=").and_then(|rest| {
        let (seq, rest) = rest.split_once("][")?;
        let (stream, text) = rest.split_once("] ")?;
        Some(LedgerEvent { seq: seq.parse().ok()?, stream: stream.to_owned(), text: text.to_owned() })
    });
    parts.ok_or_else(|| LedgerError::NotAnEvent(line.to_owned()))
}

pub(crate) fn check_ledgers(outcome: &TrialOutcome) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, contents) in outcome.after.in_folder(&outcome.log_folder) {
        let FileContents::Bytes(bytes) = contents else { continue };
        match parse(&String::from_utf8_lossy(bytes)) {
            None => {}
            Some(Ok(events)) => problems.extend(check_rules(&events)),
            Some(Err(error)) => problems.push(format!("`{name}` is malformed: {error}")),
        }
    }
    problems
}

fn check_rules(events: &[LedgerEvent]) -> Vec<String> {
    let mut problems = Vec::new();
    for (expected, event) in (1..).zip(events) {
        // Numbers without a gap show that no event was lost.
        if event.seq != expected {
            problems.push(format!("sequence number: expected {expected}, found {}", event.seq));
        }
        if !["STDOUT", "STDERR", "META"].contains(&event.stream.as_str()) {
            problems.push(format!("event type: unknown stream `{}`", event.stream));
        }
    }
    let is_meta = |event: Option<&LedgerEvent>, start: &str| {
        event.is_some_and(|event| event.stream == "META" && event.text.starts_with(start))
    };
    if !is_meta(events.first(), "safe-run start: cmd=\"") {
        problems.push("the first event is not the start".to_owned());
    }
    if !is_meta(events.last(), "safe-run exit: code=") {
        problems.push("the last event is not the exit".to_owned());
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_log_names_are_normalized() {
        let text = "20240115 log: a/safe-run-20240115-103000-a3f9b2.log 20240115T103000Z-pid7-FAIL.log";
        let expected = "20240115 log: a/safe-run-<time>-<random>.log <time>-pid<process>-FAIL.log";
        assert_eq!(normalize(text), expected);
        let bytes = normalize_bytes(b"\xff safe-run-20240115-103000-a3f9b2.log \xfe");
        assert_eq!(bytes, b"\xff safe-run-<time>-<random>.log \xfe");
    }

    #[test]
    fn files_with_equal_names_are_numbered_in_the_order_of_their_contents() {
        let [a, b] = [b"a", b"b"].map(|bytes| FileContents::Bytes(bytes.to_vec()));
        let files = vec![("log".to_owned(), &b), ("log (2)".to_owned(), &b), ("log".to_owned(), &a)];
        let named = numbered(files);
        let expected = [("log", &a), ("log (2)", &b), ("log (2) (2)", &b)];
        assert_eq!(named, BTreeMap::from(expected.map(|(name, contents)| (name.to_owned(), contents))));
    }

    #[test]
    fn lines_and_base64_survive_a_round_trip_through_json() {
        for bytes in [&b""[..], b"a\r\nb", b"\xff\n"] {
            let text = GoldenText::from_bytes(bytes);
            let json = serde_json::to_string(&text).unwrap();
            assert_eq!(serde_json::from_str::<GoldenText>(&json).unwrap(), text, "{json}");
        }
    }

    #[test]
    fn crlf_becomes_lf_in_streams_and_files() {
        let text = |text: &str| GoldenText::from_bytes(text.as_bytes());
        let golden = |line_end: &str| {
            let line = format!("line{line_end}");
            let files = [("file".to_owned(), GoldenFile::Contents(text(&line)))].into();
            Golden { exit_code: Some(0), stdout: text(&line), stderr: text(&line), files }
        };
        assert_eq!(golden("\r\n").with_lf_line_ends(), golden("\n"));
    }

    #[test]
    fn an_unreadable_golden_output_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("golden.json");
        assert!(matches!(Golden::read(&path), Err(GoldenError::Read(_))));
        counterproof_store::write::write(&path, b"{}", counterproof_store::write::Durability::Cached).unwrap();
        assert!(matches!(Golden::read(&path), Err(GoldenError::Format(_))));
    }

    #[test]
    fn a_ledger_begins_after_the_last_marker() {
        let log = "=== STDOUT ===\n--- BEGIN EVENTS ---\n\n=== STDERR ===\n\n--- BEGIN EVENTS ---\n\
            [SEQ=1][META] safe-run start: cmd=\"x\"\n[SEQ=2][STDOUT] --- BEGIN EVENTS ---\n[SEQ=3][META] safe-run exit: code=1\n\
            --- END EVENTS ---\n";
        let events = parse(log).unwrap().unwrap();
        assert_eq!(events.len(), 3);
        assert_eq!(check_rules(&events), Vec::<String>::new());
        assert_eq!(parse("merged output\n"), None);
    }

    #[test]
    fn violated_rules_are_reported() {
        let event =
            |seq, stream: &str, text: &str| LedgerEvent { seq, stream: stream.to_owned(), text: text.to_owned() };
        let events = [event(1, "META", "safe-run start: cmd=\"x\""), event(3, "OTHER", "")];
        assert_eq!(
            check_rules(&events),
            [
                "sequence number: expected 2, found 3",
                "event type: unknown stream `OTHER`",
                "the last event is not the exit"
            ]
        );
    }

    #[test]
    fn a_malformed_ledger_is_an_error() {
        let ledger = |body: &str| format!("\n--- BEGIN EVENTS ---\n{body}");
        assert_eq!(parse(&ledger("[SEQ=1][META] x\n")), Some(Err(LedgerError::NoEnd)));
        for line in ["noise", "[SEQ=x][META] a", "[SEQ=1] a"] {
            let error = LedgerError::NotAnEvent(line.to_owned());
            assert_eq!(parse(&ledger(&format!("{line}\n--- END EVENTS ---\n"))), Some(Err(error)));
        }
        assert_eq!(check_rules(&[]).len(), 2, "an empty ledger has neither start nor exit");
    }
}
