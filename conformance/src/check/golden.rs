//! What a program did as one document: golden outputs are such documents, and wrappers are compared by them. Times and random
//! parts of the names of logs are taken out; nothing else is. Logs whose names are then the same are numbered, none is lost.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex::bytes::Regex;
use serde::{Deserialize, Serialize};

use crate::trial::Contents;
use crate::trial::Outcome;

/// What a program did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Golden {
    /// Absent where a signal ended the program.
    pub(crate) exit_code: Option<i32>,
    pub(crate) stdout: Text,
    pub(crate) stderr: Text,
    /// All files in the end, by their path.
    pub(crate) files: BTreeMap<String, File>,
}

/// Bytes: text as its lines, each with its end, or base64.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Text {
    Lines(Vec<String>),
    Base64 { base64: String },
}

/// A file: of an archive the names within, of a link its target, of anything else that is no file what it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum File {
    Archive { entries: Vec<String> },
    Link { link: String },
    Other { kind: String },
    Contents(Text),
}

impl Golden {
    pub(crate) fn of(outcome: &Outcome) -> Self {
        let file = |contents: &Contents| match contents {
            Contents::Bytes(bytes) => File::Contents(Text::of(bytes)),
            Contents::Archive(entries) => File::Archive { entries: entries.clone() },
            Contents::Link(target) => File::Link { link: plain(target) },
            Contents::Other(kind) => File::Other { kind: (*kind).to_owned() },
        };
        let files = outcome.after.files.iter().map(|(path, contents)| (plain(path.as_str()), contents));
        Self {
            exit_code: outcome.code,
            stdout: Text::of(&outcome.stdout),
            stderr: Text::of(&without_chance(&outcome.stderr)),
            files: numbered(files.collect()).into_iter().map(|(path, contents)| (path, file(contents))).collect(),
        }
    }
}

/// Every file under a name of its own: of those with the same name, the second in the order of their contents is `NAME (2)`.
fn numbered(mut files: Vec<(String, &Contents)>) -> BTreeMap<String, &Contents> {
    files.sort();
    let mut named = BTreeMap::new();
    for (name, contents) in files {
        let later = (2..).map(|number: usize| format!("{name} ({number})"));
        let free = std::iter::once(name.clone()).chain(later).find(|name| !named.contains_key(name));
        named.insert(free.unwrap_or(name), contents);
    }
    named
}

impl Text {
    fn of(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Text::Lines(text.split_inclusive('\n').map(str::to_owned).collect()),
            Err(_) => Text::Base64 { base64: STANDARD.encode(bytes) },
        }
    }

    /// The text, if it is one.
    pub(crate) fn text(&self) -> Option<String> {
        match self {
            Text::Lines(lines) => Some(lines.concat()),
            Text::Base64 { .. } => None,
        }
    }

    /// The same with LF for CRLF.
    #[must_use]
    pub(crate) fn with_plain_line_ends(self) -> Self {
        match self {
            Text::Lines(lines) => Text::Lines(lines.iter().map(|line| line.replace("\r\n", "\n")).collect()),
            Text::Base64 { .. } => self,
        }
    }
}

/// A name without chance.
fn plain(name: &str) -> String {
    // What is replaced is ASCII, so the rest stays text.
    String::from_utf8_lossy(&without_chance(name.as_bytes())).into_owned()
}

/// Names of logs without time, random part and process; every other byte is kept.
fn without_chance(bytes: &[u8]) -> Vec<u8> {
    #[expect(clippy::expect_used, reason = "the patterns are part of the program, and a test uses them")]
    static NAMES: LazyLock<[(Regex, &[u8]); 2]> = LazyLock::new(|| {
        let compile = |pattern| Regex::new(pattern).expect("a pattern");
        [
            (compile(r"safe-run-\d{8}-\d{6}-[0-9a-z]+\.log"), b"safe-run-<time>-<random>.log"),
            (compile(r"\d{8}T\d{6}Z-pid\d+-(FAIL|ABORTED)(-\d+)?\.log"), b"<time>-pid<process>-$1.log"),
        ]
    });
    NAMES.iter().fold(bytes.to_owned(), |bytes, (name, plain)| name.replace_all(&bytes, *plain).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_names_of_logs_lose_their_times() {
        let text = "20240115 log: a/safe-run-20240115-103000-a3f9b2.log 20240115T103000Z-pid7-FAIL.log";
        let expected = "20240115 log: a/safe-run-<time>-<random>.log <time>-pid<process>-FAIL.log";
        assert_eq!(plain(text), expected);
        let bytes = without_chance(b"\xff safe-run-20240115-103000-a3f9b2.log \xfe");
        assert_eq!(bytes, b"\xff safe-run-<time>-<random>.log \xfe");
    }

    #[test]
    fn files_with_the_same_name_are_all_kept_in_the_order_of_their_contents() {
        let [a, b] = [b"a", b"b"].map(|bytes| Contents::Bytes(bytes.to_vec()));
        let files = vec![("log".to_owned(), &b), ("log (2)".to_owned(), &b), ("log".to_owned(), &a)];
        let named = numbered(files);
        let expected = [("log", &a), ("log (2)", &b), ("log (2) (2)", &b)];
        assert_eq!(named, BTreeMap::from(expected.map(|(name, contents)| (name.to_owned(), contents))));
    }
}
