//! What an import read, and what became of it.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use serde::Serialize;

/// Maximum number of types that are counted one by one. A hostile file could have a new one on every line.
const MAX_TYPES: usize = 500;

/// The type under which all further ones are counted.
const OTHER_TYPES: &str = "(others)";

const MAX_TYPE_CHARS: usize = 80;

/// Numbers of lines, spans or steps by their type in the source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ImportReport {
    /// Files that were read.
    pub files: u64,
    /// The sessions, in the order in which they were passed on.
    pub sessions: Vec<String>,
    pub read: BTreeMap<String, u64>,
    /// Those of which every content that is known is part of a record.
    pub mapped: BTreeMap<String, u64>,
    /// Those that are left out on purpose.
    pub left_out: BTreeMap<String, u64>,
    /// Those of unknown types, and unreadable ones.
    pub opaque: BTreeMap<String, u64>,
    pub secrets: SecretCount,
    /// Files that could not be read, or only in part.
    #[serde(skip)]
    pub problems: Vec<FileProblem>,
    /// Files of a folder that are in none of the formats.
    #[serde(skip)]
    pub unrecognized: Vec<Utf8PathBuf>,
}

/// Secrets that were masked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct SecretCount {
    /// Masked places. A secret that a file repeats is counted again.
    pub found: u64,
    pub sessions: u64,
}

/// A file that could not be read to its end. What was read before is imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileProblem {
    pub path: Utf8PathBuf,
    pub message: String,
}

impl ImportReport {
    /// The share of what was read that is mapped or left out on purpose, from 0 to 1.
    pub fn coverage(&self) -> f64 {
        let read = self.read.values().sum::<u64>();
        if read == 0 {
            return 1.0;
        }
        (read - self.opaque.values().sum::<u64>().min(read)) as f64 / read as f64
    }

    pub(super) fn add(&mut self, tally: Tally) {
        for (sums, added) in [
            (&mut self.read, tally.read),
            (&mut self.mapped, tally.mapped),
            (&mut self.left_out, tally.left_out),
            (&mut self.opaque, tally.opaque),
        ] {
            added.into_iter().for_each(|(kind, number)| increase(sums, &kind, number));
        }
    }
}

/// The numbers of one session or file.
#[derive(Debug, Default)]
pub(super) struct Tally {
    read: BTreeMap<String, u64>,
    mapped: BTreeMap<String, u64>,
    left_out: BTreeMap<String, u64>,
    opaque: BTreeMap<String, u64>,
}

/// What became of a line, span or step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Mapped,
    LeftOut,
    Opaque,
}

impl Tally {
    pub(super) fn count(&mut self, kind: &str, outcome: Outcome) {
        let kind: String = kind.chars().take(MAX_TYPE_CHARS).collect();
        increase(&mut self.read, &kind, 1);
        let counts = match outcome {
            Outcome::Mapped => &mut self.mapped,
            Outcome::LeftOut => &mut self.left_out,
            Outcome::Opaque => &mut self.opaque,
        };
        increase(counts, &kind, 1);
    }
}

fn increase(counts: &mut BTreeMap<String, u64>, kind: &str, number: u64) {
    if let Some(count) = counts.get_mut(kind) {
        *count += number;
    } else {
        let kind = if counts.len() < MAX_TYPES { kind } else { OTHER_TYPES };
        *counts.entry(kind.to_owned()).or_default() += number;
    }
}
