//! Run folders opened for reading: one by its path, the newest of a side, and the repeats of a group.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::evaluation::Evaluation;
use counterproof_artifact::schema::Kind;
use counterproof_artifact::{Case, CaseId, Labels, Manifest, Outcome, Run, RunId, Side};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::write::TEMPORARY_PREFIX;
use crate::{confined_path, read_file};

/// A document that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file could not be read.
    #[error("failed to read `{path}`")]
    Io {
        /// The file.
        path: Utf8PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file is not the expected document.
    #[error("`{path}` is not a valid document")]
    Document {
        /// The file.
        path: Utf8PathBuf,
        /// The error, with line and column.
        source: serde_json::Error,
    },
    /// There is no run of this side.
    #[error("no run of side `{side}` under `{out}`")]
    NoRun {
        /// The folder that holds the sides.
        out: Utf8PathBuf,
        side: Side,
    },
    /// There are only shards of runs of this side.
    #[error("no complete run of side `{side}` under `{out}`: found only shards, such as `{shard}`")]
    OnlyShards {
        /// The folder that holds the sides.
        out: Utf8PathBuf,
        side: Side,
        /// The folder of one shard.
        shard: Utf8PathBuf,
    },
    /// There are only runs of this side that were stopped or failed.
    #[error(
        "no usable run of side `{side}` under `{out}`: found only runs that were stopped or failed, such as `{run}`"
    )]
    OnlyFailed {
        /// The folder that holds the sides.
        out: Utf8PathBuf,
        side: Side,
        /// The folder of one run.
        run: Utf8PathBuf,
    },
}

impl ReadError {
    /// True where the file does not exist.
    pub fn is_missing(&self) -> bool {
        matches!(self, ReadError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

fn read_document<T: DeserializeOwned>(folder: &Utf8Path, name: &str) -> Result<T, ReadError> {
    let path = folder.join(name);
    match confined_path::read(folder, name) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|source| ReadError::Document { path, source }),
        Err(error) => Err(ReadError::Io { path, source: error.into_io() }),
    }
}

/// Reads an evaluation from any path. Returns its bytes as well, because they can contain fields that this version does not
/// know.
pub fn read_evaluation(path: &Utf8Path) -> Result<(Evaluation, Vec<u8>), ReadError> {
    let bytes = read_file::read(path, read_file::MAX_LARGE_BYTES)
        .map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
    match serde_json::from_slice(&bytes) {
        Ok(evaluation) => Ok((evaluation, bytes)),
        Err(source) => Err(ReadError::Document { path: path.to_owned(), source }),
    }
}

/// The newest run of a side, and the other runs next to it.
#[derive(Debug)]
pub struct Latest {
    pub run: RunReader,
    /// The other repeats of its group, oldest first; empty where the run is not repeated.
    pub repeats: Vec<RunReader>,
    /// Complete runs outside of the group, oldest first.
    pub others: Vec<RunReader>,
    /// Newer baselines that were not chosen because they failed, were stopped or have no answered case, oldest first.
    pub unanswered: Vec<RunReader>,
    /// Runs that could not be read. One of them may be newer.
    pub skipped: Vec<ReadError>,
}

/// Separates the runs that were stopped or failed. A run that a person accepted counts in any case.
fn split_off_failed(runs: Vec<RunReader>) -> (Vec<RunReader>, Vec<RunReader>) {
    let is_set = |run: &RunReader, name: &str| run.run.extra.get(name).is_some_and(|value| *value == true);
    runs.into_iter()
        .partition(|run| run.run.accepted.is_some() || !(is_set(run, "interrupted") || is_set(run, "failed")))
}

/// Removes the runs without answers that are newer than every run with one, and returns them. Runs are sorted by age,
/// oldest first. Removes none if no run has answers.
fn split_off_unanswered(runs: &mut Vec<RunReader>) -> Vec<RunReader> {
    let Some(answered) = runs.iter().rfind(|run| run.has_answers()) else { return Vec::new() };
    // A group of repeats stays if one of them has answers.
    let group = answered.run.group();
    let newest = runs.iter().rposition(|run| run.run.group() == group);
    newest.map_or_else(Vec::new, |newest| runs.split_off(newest + 1))
}

/// A run folder, opened for reading.
#[derive(Debug, Clone)]
pub struct RunReader {
    folder: Utf8PathBuf,
    run: Run,
}

impl RunReader {
    /// Opens a run folder by its `run.json`.
    pub fn open(folder: &Utf8Path) -> Result<Self, ReadError> {
        let run = read_document(folder, RUN_FILE)?;
        Ok(Self { folder: folder.to_owned(), run })
    }

    /// The same folder under another run document.
    #[must_use]
    pub fn with_run(&self, run: Run) -> Self {
        Self { folder: self.folder.clone(), run }
    }

    /// Opens the newest run of a side below `out`, as [`RunReader::latest`] does.
    pub fn open_latest(out: &Utf8Path, side: Side) -> Result<Self, ReadError> {
        Self::latest(out, side).map(|latest| latest.run)
    }

    /// Finds the newest run of a side below `out`: the one accepted or generated last; between two equal times, the one with
    /// the greater id. Skips shards, which are parts of a run, confirmation runs, which have a few cases of one, and runs that
    /// cannot be read; an error where nothing else is there. A baseline without an answered case is chosen only if no other
    /// has one, since nothing can be compared with it. A new run without answers is chosen: a comparison must report it. A baseline
    /// that was stopped or failed is never chosen.
    pub fn latest(out: &Utf8Path, side: Side) -> Result<Latest, ReadError> {
        let (mut runs, skipped) = Self::all(out, side)?;
        runs.retain(|run| run.run.confirmation.is_none());
        // The shards that a run was merged from may still exist next to it.
        let (shards, mut complete): (Vec<_>, Vec<_>) = runs.into_iter().partition(|run| run.run.shard.is_some());
        // Not by folder name: IDs are free text and need not sort by time.
        complete.sort_by(|a, b| a.run.age().cmp(&b.run.age()));
        let (mut unanswered, mut failed) = (Vec::new(), Vec::new());
        if side == Side::Baseline {
            (complete, failed) = split_off_failed(complete);
            unanswered = split_off_unanswered(&mut complete);
        }
        if let Some(run) = complete.pop() {
            // A copy of the same run in another folder is not a repeat.
            let is_repeat = |other: &RunReader| {
                let (other, run) = (&other.run, &run.run);
                other.group() == run.group() && other.run_id != run.run_id
            };
            failed.retain(|failed| failed.run.age() > run.run.age());
            unanswered.extend(failed);
            let (repeats, others) = complete.into_iter().partition(is_repeat);
            return Ok(Latest { run, repeats, others, unanswered, skipped });
        }
        if let Some(run) = failed.pop() {
            return Err(ReadError::OnlyFailed { out: out.to_owned(), side, run: run.folder });
        }
        Err(match (skipped.into_iter().next(), shards.into_iter().next()) {
            // An unreadable run may be the one that the user means, so it explains more than the shards.
            (Some(unreadable), _) => unreadable,
            (None, Some(shard)) => ReadError::OnlyShards { out: out.to_owned(), side, shard: shard.folder },
            (None, None) => ReadError::NoRun { out: out.to_owned(), side },
        })
    }

    /// Returns all readable runs in the parent folder, this one included.
    pub fn siblings(&self) -> Result<Vec<RunReader>, ReadError> {
        Self::within(&self.parent_folder()).map(|(runs, _)| runs)
    }

    /// Returns the confirmation runs of the run `of` in a folder of runs, in the order in which they were made. Skips those
    /// that cannot be read. Only folders named `<of>-c<number>` are opened, because a folder of runs can hold thousands.
    pub fn confirmations(folder: &Utf8Path, of: &RunId) -> Vec<RunReader> {
        let is_named = |name: &str| {
            let number = name.strip_prefix(of.as_str()).and_then(|rest| rest.strip_prefix("-c"));
            number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let entries = folder.read_dir_utf8().into_iter().flatten().filter_map(Result::ok);
        let readers = entries
            .filter(|entry| is_named(entry.file_name()))
            .filter_map(|entry| RunReader::open(entry.path()).ok())
            .filter(|run| run.run.confirmation.as_ref().is_some_and(|confirmation| confirmation.of == *of));
        let mut runs: Vec<RunReader> = readers.collect();
        runs.sort_by_key(|run| run.run.confirmation.as_ref().and_then(|confirmation| confirmation.index));
        runs
    }

    /// The folder that contains the run folder.
    pub fn parent_folder(&self) -> Utf8PathBuf {
        match (self.folder.file_name(), self.folder.parent()) {
            (Some(_), Some(parent)) if !parent.as_str().is_empty() => parent.to_owned(),
            (Some(_), _) => Utf8PathBuf::from("."),
            // `.`, or a path that ends in `..`.
            (None, _) => self.folder.join(".."),
        }
    }

    /// Returns every run of a side below `out`, and the errors of the others.
    fn all(out: &Utf8Path, side: Side) -> Result<(Vec<RunReader>, Vec<ReadError>), ReadError> {
        match Self::within(&out.join(side.as_str())) {
            Err(error) if error.is_missing() => Err(ReadError::NoRun { out: out.to_owned(), side }),
            found => found,
        }
    }

    /// Returns every run in a folder, and the errors of the others.
    fn within(folder: &Utf8Path) -> Result<(Vec<RunReader>, Vec<ReadError>), ReadError> {
        let failed = |source| ReadError::Io { path: folder.to_owned(), source };
        let (mut runs, mut skipped) = (Vec::new(), Vec::new());
        for entry in folder.read_dir_utf8().map_err(failed)? {
            let entry = entry.map_err(failed)?;
            // A folder with a temporary name is still under construction.
            if entry.file_name().starts_with(TEMPORARY_PREFIX) || !entry.path().join(RUN_FILE).is_file() {
                continue;
            }
            match RunReader::open(entry.path()) {
                Ok(run) => runs.push(run),
                Err(error) => skipped.push(error),
            }
        }
        Ok((runs, skipped))
    }

    /// Reports whether the run has an answered case. A run without statistics was stopped or comes from another producer: its
    /// artifacts are read until one has an answer. One that cannot be read may have one.
    pub fn has_answers(&self) -> bool {
        if let Some(answered) = self.run.stats.as_ref().and_then(|stats| stats.cases_completed) {
            return answered.get() > 0;
        }
        let is_answered = |id: &CaseId| self.read_case(id).map_or(true, |case| matches!(case.outcome, Outcome::Ok(_)));
        self.case_ids_on_disk().map_or(true, |ids| ids.iter().any(is_answered))
    }

    pub fn folder(&self) -> &Utf8Path {
        &self.folder
    }

    /// The run document.
    pub const fn run(&self) -> &Run {
        &self.run
    }

    /// Reads the artifact of a case without validating it.
    pub fn read_case(&self, case: &CaseId) -> Result<Case, ReadError> {
        read_document(self.folder(), &format!("{case}.json"))
    }

    /// Returns the names of all files directly under `assets/` except the manifest, sorted.
    pub fn asset_names(&self) -> Result<Vec<String>, ReadError> {
        let mut names = file_names(&self.folder().join(ASSETS_FOLDER))?;
        names.retain(|name| !MANIFEST_FILE.ends_with(&format!("/{name}")));
        names.sort_unstable();
        Ok(names)
    }

    /// The path of the artifact of a case, which need not exist.
    pub fn case_path(&self, case: &CaseId) -> Utf8PathBuf {
        self.folder.join(format!("{case}.json"))
    }

    /// Reads the manifest of the assets, if there is one.
    pub fn manifest(&self) -> Result<Option<Manifest>, ReadError> {
        match read_document(&self.folder, MANIFEST_FILE) {
            Ok(manifest) => Ok(Some(manifest)),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads the labels of the cases, if there are any. Another document of their name is the artifact of a case.
    pub fn labels(&self) -> Result<Option<Labels>, ReadError> {
        let document: Value = match read_document(&self.folder, LABELS_FILE) {
            Ok(document) => document,
            Err(error) if error.is_missing() => return Ok(None),
            Err(error) => return Err(error),
        };
        // A case can have the id `labels`, so the schema version decides.
        if document.get("schema_version").and_then(Value::as_str) != Some(Kind::Labels.schema_version()) {
            return Ok(None);
        }
        let path = self.folder.join(LABELS_FILE);
        serde_json::from_value(document).map(Some).map_err(|source| ReadError::Document { path, source })
    }

    /// Returns the ids of all files that are named like an artifact, sorted.
    pub fn case_ids_on_disk(&self) -> Result<Vec<CaseId>, ReadError> {
        let io = |source| ReadError::Io { path: self.folder.clone(), source };
        let mut ids = Vec::new();
        for entry in self.folder.read_dir_utf8().map_err(io)? {
            let entry = entry.map_err(io)?;
            // `run` and `evaluation` are not valid case ids, which excludes these documents.
            if let Some(id) = entry.file_name().strip_suffix(".json").and_then(|stem| stem.parse().ok()) {
                ids.push(id);
            }
        }
        ids.sort_unstable();
        Ok(ids)
    }
}

/// The run document.
pub const RUN_FILE: &str = "run.json";

/// The evaluator's document, in a run folder and in a report.
pub const EVALUATION_FILE: &str = "evaluation.json";

/// The labels of an accepted baseline. A case may have this name: the `schema_version` tells the two apart.
pub const LABELS_FILE: &str = "labels.json";

/// The folder of the assets.
pub const ASSETS_FOLDER: &str = "assets";

pub const MANIFEST_FILE: &str = "assets/manifest.json";

/// Extensions of assets: no browser executes such a file when it is opened from disk.
pub const SAFE_EXTENSIONS: [&str; 3] = ["json", "txt", "bin"];

/// Returns the names of the files in a folder; none where the folder does not exist.
fn file_names(folder: &Utf8Path) -> Result<Vec<String>, ReadError> {
    let failed = |source| ReadError::Io { path: folder.to_owned(), source };
    let entries = match folder.read_dir_utf8() {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        // A process may be writing in the folder.
        let is_unfinished = entry.file_name().starts_with(TEMPORARY_PREFIX);
        if !is_unfinished && entry.file_type().map_err(failed)?.is_file() {
            names.push(entry.file_name().to_owned());
        }
    }
    Ok(names)
}
