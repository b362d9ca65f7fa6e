//! A comparison in shards: each shard compares its cases and writes what it found, its facts, and one process judges all cases
//! from the facts of all shards. The result is that of [`super::compare`].
//!
//! Facts are lines of JSON: a header, what the baseline of the shard's cases has in common, a line for each case, and the SHA-256
//! of all lines before. They are read by the version that wrote them, so their fields are not a format for other programs.
//!
//! With one run per side, a line has the row of a case, unless it depends on the other shards; those cases are compared again.
//! With several runs, a line has what all runs of the case did, and the pair to show is chosen and compared at the end.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{self, BufRead, BufReader, Read as _, Write};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::canonical::Sha256Hasher;
use counterproof_artifact::evaluation::{Evaluation, Verdict};
use counterproof_artifact::{Sha256Digest, Sides};
use counterproof_cases::Shard;
use counterproof_store::write::{self, AtomicFile, Durability, WriteError};
use counterproof_store::{ReadError, read_file};
use rayon::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::case::CaseComparison;
use super::compare::{BaselineNotes, CompareError, ComparedRow, Comparison, Known};
use super::request::Request;
use crate::repeats::{CaseObservations, Names, Observations};
use crate::values::{set_key, text_hash};

const EXTENSION: &str = "jsonl";

/// Facts that could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteShardFactsError {
    /// A run folder could not be listed.
    #[error(transparent)]
    Runs(#[from] ReadError),
    /// The facts could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Facts that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ShardFactsError {
    /// A run folder could not be listed.
    #[error(transparent)]
    Runs(#[from] ReadError),
    /// The folder has no facts.
    #[error("`{0}` has no facts")]
    Empty(Utf8PathBuf),
    /// The file or the folder could not be read.
    #[error("failed to read `{path}`")]
    Read {
        /// The file.
        path: Utf8PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A line is not what facts have there.
    #[error("`{path}` is not a file of facts, or is damaged: line {line}")]
    Line {
        /// The file.
        path: Utf8PathBuf,
        /// The number of the line, counted from 1.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The file ends early, or names a case twice or one that it cannot have.
    #[error("`{path}` is damaged: {what}")]
    Damaged {
        /// The file.
        path: Utf8PathBuf,
        /// What is wrong.
        what: String,
    },
    /// Another version wrote the file.
    #[error("`{path}` was written by {theirs}, and this is {ours}")]
    Version {
        /// The file.
        path: Utf8PathBuf,
        /// The version that wrote it.
        theirs: String,
        /// This version.
        ours: String,
    },
    /// The file is of other runs, cases or rules.
    #[error("`{0}` has the facts of another comparison: of other runs, cases or rules")]
    Foreign(Utf8PathBuf),
    /// The file is of another division.
    #[error("`{path}` has the facts of shard {shard}, but other files are of {expected} shards")]
    Count {
        /// The file.
        path: Utf8PathBuf,
        /// Its shard.
        shard: Shard,
        /// The number of shards in the files before.
        expected: u32,
    },
    /// Two files are of the same shard.
    #[error("`{first}` and `{second}` both have the facts of shard {shard}")]
    Doubled {
        /// The shard.
        shard: Shard,
        /// The file that was read first.
        first: Utf8PathBuf,
        /// The other file.
        second: Utf8PathBuf,
    },
    /// Shards are missing.
    #[error("{missing} of {count} shards have no facts: {}", list(first, *missing))]
    Missing {
        /// How many.
        missing: u32,
        /// The first of them.
        first: Vec<u32>,
        /// The number of shards.
        count: u32,
    },
}

/// The most shards that a message names.
const NAMED: usize = 10;

/// `3, 4, 7 and 20 more`
fn list(first: &[u32], all: u32) -> String {
    let named: Vec<_> = first.iter().map(u32::to_string).collect();
    let more = (all as usize).saturating_sub(first.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", named.join(", "))
}

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    schema_version: Schema,
    evaluator_version: String,
    /// The digest of what decides the facts: the runs, the cases and the rules.
    comparison: Sha256Digest,
    /// A hash with the key of the process. Hashes of processes with different keys cannot be compared.
    key_check: u64,
    shard: Shard,
    cases: usize,
}

#[derive(Debug, Serialize, Deserialize)]
enum Schema {
    #[serde(rename = "comparison-facts.v1")]
    V1,
}

const VERSION: &str = concat!("counterproof ", env!("CARGO_PKG_VERSION"));

/// The second line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Shared {
    Notes(BaselineNotes),
    Places(Names),
}

/// What is known of a case.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CaseFacts {
    Row(ComparedRow),
    /// The row depends on the cases of other shards.
    Undecided,
    Runs(CaseObservations),
}

/// The line of a case.
#[derive(Debug, Serialize, Deserialize)]
struct CaseLine {
    /// The position among all cases of the comparison.
    index: usize,
    facts: CaseFacts,
}

/// The last line.
#[derive(Debug, Serialize, Deserialize)]
struct End {
    sha256: Sha256Digest,
}

/// A file of facts that is being written, and the digest of its lines.
struct FactsWriter {
    file: AtomicFile,
    hasher: Sha256Hasher,
    path: Utf8PathBuf,
}

impl FactsWriter {
    fn write(&mut self, line: &impl Serialize) -> Result<(), WriteError> {
        let failed = |source: io::Error| WriteError { path: self.path.clone(), source };
        let mut text = serde_json::to_vec(line).map_err(|error| failed(error.into()))?;
        text.push(b'\n');
        self.hasher.update(&text);
        self.file.write_all(&text).map_err(failed)
    }

    fn finish(mut self) -> Result<Utf8PathBuf, WriteError> {
        let (sha256, _) = std::mem::take(&mut self.hasher).finish();
        self.write(&End { sha256 })?;
        self.file.commit(Durability::Synced)?;
        Ok(self.path)
    }
}

/// Compares the cases of a shard, and writes their facts to a file in the folder. Returns the path of the file.
pub fn write_shard_facts(
    request: &Request<'_>,
    shard: Shard,
    folder: &Utf8Path,
) -> Result<Utf8PathBuf, WriteShardFactsError> {
    let comparison = Comparison::new(request)?;
    write::create_folder(folder)?;
    let path = folder.join(format!("shard-{}-of-{}.{EXTENSION}", shard.index(), shard.count()));
    let mut out = FactsWriter { file: AtomicFile::create(&path)?, hasher: Sha256Hasher::default(), path };
    let digest = digest(&comparison);
    set_key(digest.to_string().as_bytes());
    let indexes: Vec<_> = (0..comparison.ids.len()).filter(|index| shard.contains(&comparison.ids[*index])).collect();
    let header = Header {
        schema_version: Schema::V1,
        evaluator_version: VERSION.to_owned(),
        comparison: digest,
        key_check: key_check(),
        shard,
        cases: indexes.len(),
    };
    out.write(&header)?;
    if comparison.is_repeated() {
        let ids: Vec<_> = indexes.iter().map(|index| &comparison.ids[*index]).collect();
        let Observations { cases, names } = Observations::new(&comparison.inputs(), ids);
        out.write(&Shared::Places(names))?;
        for (index, runs) in indexes.iter().zip(cases) {
            let facts = CaseFacts::Runs(runs);
            out.write(&CaseLine { index: *index, facts })?;
        }
    } else {
        let notes = BaselineNotes::default();
        let nothing = |_: &CaseComparison<'_>| Ok::<_, WriteError>(());
        let rows = comparison.pass(None, &notes).first(indexes.clone(), nothing)?;
        out.write(&Shared::Notes(notes))?;
        for (index, row) in indexes.iter().zip(rows) {
            let facts = row.map_or(CaseFacts::Undecided, CaseFacts::Row);
            out.write(&CaseLine { index: *index, facts })?;
        }
    }
    Ok(out.finish()?)
}

/// The digest of what decides the facts. Paths are not a part of it: machines may see the same runs at different paths.
fn digest(comparison: &Comparison<'_>) -> Sha256Digest {
    let request = comparison.request;
    let mut hasher = Sha256Hasher::default();
    // The length first, so that no two sequences of parts have the same bytes. Serialising our own types cannot fail.
    let mut add = |part: &[u8]| {
        hasher.update(&(part.len() as u64).to_be_bytes());
        hasher.update(part);
    };
    for side in [&request.baseline, &request.new] {
        add(&(side.iter().len() as u64).to_be_bytes());
        for run in side.iter() {
            add(&serde_json::to_vec(run.reader().run()).unwrap_or_default());
            // The labels, which are in a file of their own.
            let solved = comparison.ids.iter().map(|id| run.is_solved(id).map_or(2, u8::from));
            add(&solved.collect::<Vec<u8>>());
        }
    }
    comparison.ids.iter().for_each(|id| add(id.as_str().as_bytes()));
    add(&serde_json::to_vec(request.cases).unwrap_or_default());
    let Request { rules, signals, thresholds, is_deterministic, is_alone, .. } = request;
    add(format!("{rules:?} {signals:?} {thresholds:?} {is_deterministic} {is_alone}").as_bytes());
    hasher.finish().0
}

fn key_check() -> u64 {
    text_hash("comparison-facts")
}

/// The facts of all shards of a comparison.
#[derive(Debug)]
pub struct ShardFacts<'a> {
    comparison: Comparison<'a>,
    digest: Sha256Digest,
    /// The number of shards, and the file of each.
    shards: Option<u32>,
    files: BTreeMap<u32, Utf8PathBuf>,
    notes: BaselineNotes,
    places: Names,
    cases: Vec<Option<CaseFacts>>,
}

impl<'a> ShardFacts<'a> {
    /// Reads the facts in a folder, which must have those of each shard once.
    pub fn read(request: &'a Request<'a>, folder: &Utf8Path) -> Result<Self, ShardFactsError> {
        let comparison = Comparison::new(request)?;
        let digest = digest(&comparison);
        set_key(digest.to_string().as_bytes());
        let cases = comparison.ids.iter().map(|_| None).collect();
        let mut facts = Self {
            comparison,
            digest,
            shards: None,
            files: BTreeMap::new(),
            notes: BaselineNotes::default(),
            places: Names::default(),
            cases,
        };
        for path in files(folder).map_err(|source| ShardFactsError::Read { path: folder.to_owned(), source })? {
            let (file, _) =
                read_file::open(&path).map_err(|source| ShardFactsError::Read { path: path.clone(), source })?;
            facts.add(&path, BufReader::new(file))?;
        }
        facts.check_complete(folder)?;
        Ok(facts)
    }

    fn add(&mut self, path: &Utf8Path, file: impl BufRead) -> Result<(), ShardFactsError> {
        let mut lines = Lines { path, file, read: 0, line: String::new(), hasher: Sha256Hasher::default() };
        let header: Header = lines.required()?;
        self.check(path, &header)?;
        match lines.required()? {
            Shared::Notes(notes) => self.notes.merge(notes),
            Shared::Places(names) => self.places = std::mem::take(&mut self.places).merged(names),
        }
        let damaged = |what: String| ShardFactsError::Damaged { path: path.to_owned(), what };
        for _ in 0..header.cases {
            let CaseLine { index, facts } = lines.required()?;
            // What a line has follows from the number of runs, which the digest covers.
            if matches!(facts, CaseFacts::Runs(_)) != self.comparison.is_repeated() {
                return Err(damaged(format!("line {} has facts of another kind", lines.read)));
            }
            if !self.fits(index, &facts) {
                return Err(damaged(format!("line {} has another case than its index", lines.read)));
            }
            match self.cases.get_mut(index) {
                Some(slot @ None) => *slot = Some(facts),
                Some(Some(_)) => return Err(damaged(format!("line {} has a case that is known", lines.read))),
                None => return Err(damaged(format!("line {} has a case that no run has", lines.read))),
            }
        }
        let (sha256, _) = std::mem::take(&mut lines.hasher).finish();
        let end: End = lines.required()?;
        if end.sha256 == sha256 { Ok(()) } else { Err(damaged("it was changed after it was written".to_owned())) }
    }

    /// Whether facts are about the case with this index, as far as they state it.
    fn fits(&self, index: usize, facts: &CaseFacts) -> bool {
        let request = self.comparison.request;
        match facts {
            CaseFacts::Row(row) => self.comparison.ids.get(index).is_none_or(|id| *id == row.evaluation.case_id),
            CaseFacts::Undecided => true,
            CaseFacts::Runs(runs) => runs.runs() == Sides::new(request.baseline.iter().len(), request.new.iter().len()),
        }
    }

    /// Checks that a file belongs to the comparison, and notes its shard.
    fn check(&mut self, path: &Utf8Path, header: &Header) -> Result<(), ShardFactsError> {
        let (path, shard) = (path.to_owned(), header.shard);
        if header.evaluator_version != VERSION {
            let theirs = header.evaluator_version.clone();
            return Err(ShardFactsError::Version { path, theirs, ours: VERSION.to_owned() });
        }
        if header.comparison != self.digest {
            return Err(ShardFactsError::Foreign(path));
        }
        if header.key_check != key_check() {
            let what = "its hashes are those of another build of the program".to_owned();
            return Err(ShardFactsError::Damaged { path, what });
        }
        let expected = *self.shards.get_or_insert(shard.count());
        if shard.count() != expected {
            return Err(ShardFactsError::Count { path, shard, expected });
        }
        match self.files.entry(shard.index()) {
            Entry::Occupied(known) => Err(ShardFactsError::Doubled { shard, first: known.get().clone(), second: path }),
            Entry::Vacant(free) => {
                free.insert(path);
                Ok(())
            }
        }
    }

    fn check_complete(&self, folder: &Utf8Path) -> Result<(), ShardFactsError> {
        let count = self.shards.ok_or_else(|| ShardFactsError::Empty(folder.to_owned()))?;
        let missing = count - u32::try_from(self.files.len()).unwrap_or(count);
        if missing > 0 {
            let first = (1..=count).filter(|shard| !self.files.contains_key(shard)).take(NAMED).collect();
            return Err(ShardFactsError::Missing { missing, first, count });
        }
        let unknown = self.cases.iter().filter(|facts| facts.is_none()).count();
        if unknown > 0 {
            let what = format!("its shards lack {unknown} of {} cases", self.cases.len());
            return Err(ShardFactsError::Damaged { path: folder.to_owned(), what });
        }
        Ok(())
    }

    /// The verdict of each case that the facts decide, in the order of the cases.
    pub fn verdicts(&self) -> Vec<Option<Verdict>> {
        let verdict = |facts: &Option<CaseFacts>| match facts {
            Some(CaseFacts::Row(row)) => Some(row.evaluation.verdict),
            _ => None,
        };
        self.cases.iter().map(verdict).collect()
    }

    /// Judges all cases from the facts, as [`super::compare`] does from the runs. The sink receives the cases that are compared
    /// here: with one run per side, those with a verdict that `shows` selects, and those that depend on several shards.
    pub fn compare<E: Send>(
        self,
        shows: impl Fn(Verdict) -> bool + Sync,
        sink: impl Fn(&CaseComparison<'_>) -> Result<(), E> + Sync,
    ) -> Result<Evaluation, CompareError<E>> {
        let Self { comparison, notes, places, cases, .. } = self;
        let known = if comparison.is_repeated() {
            let runs = cases.into_iter().filter_map(|facts| match facts {
                Some(CaseFacts::Runs(runs)) => Some(runs),
                _ => None,
            });
            Known::Runs(Observations { cases: runs.collect(), names: places })
        } else {
            let row = |facts: Option<CaseFacts>| match facts {
                Some(CaseFacts::Row(row)) if !shows(row.evaluation.verdict) => Some(row),
                _ => None,
            };
            Known::Pairs(cases.into_par_iter().map(row).collect(), notes)
        };
        comparison.finish(known, sink)
    }
}

/// The files of facts in a folder, sorted.
fn files(folder: &Utf8Path) -> io::Result<Vec<Utf8PathBuf>> {
    let mut files = Vec::new();
    for entry in folder.read_dir_utf8()? {
        let path = entry?.into_path();
        // Unfinished files start with a dot.
        let is_finished = path.file_name().is_some_and(|name| !name.starts_with('.'));
        if is_finished && path.extension() == Some(EXTENSION) {
            files.push(path);
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// The lines of a file of facts.
struct Lines<'p, F> {
    path: &'p Utf8Path,
    file: F,
    read: usize,
    line: String,
    hasher: Sha256Hasher,
}

impl<F: BufRead> Lines<'_, F> {
    fn required<T: DeserializeOwned>(&mut self) -> Result<T, ShardFactsError> {
        self.line.clear();
        let read = (&mut self.file).take(read_file::MAX_LARGE_BYTES).read_line(&mut self.line);
        read.map_err(|source| ShardFactsError::Read { path: self.path.to_owned(), source })?;
        self.hasher.update(self.line.as_bytes());
        self.read += 1;
        // An empty line at the end of the file is an error too.
        serde_json::from_str(&self.line).map_err(|source| ShardFactsError::Line {
            path: self.path.to_owned(),
            line: self.read,
            source,
        })
    }
}
