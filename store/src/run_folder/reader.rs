//! Run folders as they are read: one by its path, the latest of a side, and those that belong together.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use serde::de::DeserializeOwned;

use super::{MANIFEST_FILE, RUN_FILE};
use crate::confined_path;
use crate::write::TEMPORARY_PREFIX;
use counterproof_artifact::evaluation::Evaluation;
use counterproof_artifact::{CaseId, Manifest, Run, Side};

/// A document that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system said no.
    #[error("failed to read `{path}`")]
    Io {
        /// The file.
        path: Utf8PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is there, but is not the document that it should be.
    #[error("`{path}` is not a valid document")]
    Document {
        /// The file.
        path: Utf8PathBuf,
        /// What is wrong, with line and column.
        source: serde_json::Error,
    },
    /// No run folder of this side is there.
    #[error("no run of side `{side}` under `{out}`")]
    NoRun {
        /// The folder that holds the sides.
        out: Utf8PathBuf,
        /// The side.
        side: Side,
    },
    /// There are shards of runs of this side, and none that is whole.
    #[error("no whole run of side `{side}` under `{out}`: there are only shards, such as `{shard}`")]
    OnlyShards {
        /// The folder that holds the sides.
        out: Utf8PathBuf,
        /// The side.
        side: Side,
        /// A shard's folder.
        shard: Utf8PathBuf,
    },
}

impl ReadError {
    /// True where the file is not there at all.
    pub fn is_missing(&self) -> bool {
        matches!(self, ReadError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

pub(super) fn read_document<T: DeserializeOwned>(folder: &Utf8Path, name: &str) -> Result<T, ReadError> {
    let path = folder.join(name);
    match confined_path::read(folder, name) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|source| ReadError::Document { path, source }),
        Err(error) => Err(ReadError::Io { path, source: error.into_io() }),
    }
}

/// Reads an evaluation, wherever it lies; its bytes too, since they may say more than this version knows.
pub fn read_evaluation(path: &Utf8Path) -> Result<(Evaluation, Vec<u8>), ReadError> {
    let bytes = std::fs::read(path).map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
    match serde_json::from_slice(&bytes) {
        Ok(evaluation) => Ok((evaluation, bytes)),
        Err(source) => Err(ReadError::Document { path: path.to_owned(), source }),
    }
}

/// The newest run of a side, and what lies beside it.
#[derive(Debug)]
pub struct Latest {
    /// The run.
    pub run: RunReader,
    /// The runs that are repeats of the same, oldest first; none where the run is no repeat.
    pub repeats: Vec<RunReader>,
    /// Whole runs of the side that are not, oldest first.
    pub others: Vec<RunReader>,
    /// Runs beside it that could not be read: one of them may be newer.
    pub skipped: Vec<ReadError>,
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

    /// Opens the newest run of a side below `out`, as [`RunReader::latest`] does.
    pub fn open_latest(out: &Utf8Path, side: Side) -> Result<Self, ReadError> {
        Self::latest(out, side).map(|latest| latest.run)
    }

    /// Finds the newest run of a side below `out`: the one accepted or generated last, and of two the one with the greater id.
    /// Shards are passed over, which are parts of a run, and runs that cannot be read; where there is no other, that is the error.
    pub fn latest(out: &Utf8Path, side: Side) -> Result<Latest, ReadError> {
        let (runs, skipped) = Self::all(out, side)?;
        // The shards that a run was merged from may still lie beside it.
        let (shards, mut whole): (Vec<_>, Vec<_>) = runs.into_iter().partition(|run| run.run.shard.is_some());
        whole.sort_by(|a, b| a.run.age().cmp(&b.run.age()));
        if let Some(run) = whole.pop() {
            // A copy of the run itself, in a folder of another name, is no repeat of it.
            let is_repeat = |other: &RunReader| {
                let (other, run) = (&other.run, &run.run);
                run.group_id.is_some() && other.group_id == run.group_id && other.run_id != run.run_id
            };
            let (repeats, others) = whole.into_iter().partition(is_repeat);
            return Ok(Latest { run, repeats, others, skipped });
        }
        Err(match (skipped.into_iter().next(), shards.into_iter().next()) {
            (Some(unreadable), _) => unreadable,
            (None, Some(shard)) => ReadError::OnlyShards { out: out.to_owned(), side, shard: shard.folder },
            (None, None) => ReadError::NoRun { out: out.to_owned(), side },
        })
    }

    /// The runs in the folder that this one lies in, itself among them. What cannot be read is left out.
    pub fn beside(&self) -> Result<Vec<RunReader>, ReadError> {
        Self::within(&self.lies_in()).map(|(runs, _)| runs)
    }

    /// The folder that the run's folder lies in.
    pub fn lies_in(&self) -> Utf8PathBuf {
        match (self.folder.file_name(), self.folder.parent()) {
            (Some(_), Some(parent)) if !parent.as_str().is_empty() => parent.to_owned(),
            (Some(_), _) => Utf8PathBuf::from("."),
            // `.`, or a path that ends in `..`.
            (None, _) => self.folder.join(".."),
        }
    }

    /// Every run of a side below `out`, and why others could not be read.
    fn all(out: &Utf8Path, side: Side) -> Result<(Vec<RunReader>, Vec<ReadError>), ReadError> {
        match Self::within(&out.join(side.as_str())) {
            Err(error) if error.is_missing() => Err(ReadError::NoRun { out: out.to_owned(), side }),
            found => found,
        }
    }

    /// Every run in a folder, and why others could not be read.
    fn within(folder: &Utf8Path) -> Result<(Vec<RunReader>, Vec<ReadError>), ReadError> {
        let failed = |source| ReadError::Io { path: folder.to_owned(), source };
        let (mut runs, mut skipped) = (Vec::new(), Vec::new());
        for entry in folder.read_dir_utf8().map_err(failed)? {
            let entry = entry.map_err(failed)?;
            // A folder that is still being put together is no run yet.
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

    /// The folder.
    pub fn folder(&self) -> &Utf8Path {
        &self.folder
    }

    /// The run document.
    pub const fn run(&self) -> &Run {
        &self.run
    }

    /// Where the artifact of a case is, or would be.
    pub fn case_path(&self, case: &CaseId) -> Utf8PathBuf {
        self.folder.join(format!("{case}.json"))
    }

    /// The assets' manifest, if there is one.
    pub fn manifest(&self) -> Result<Option<Manifest>, ReadError> {
        match read_document(&self.folder, MANIFEST_FILE) {
            Ok(manifest) => Ok(Some(manifest)),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The ids of all files in the folder that are named like an artifact, sorted.
    pub fn case_ids_on_disk(&self) -> Result<Vec<CaseId>, ReadError> {
        let io = |source| ReadError::Io { path: self.folder.clone(), source };
        let mut ids = Vec::new();
        for entry in self.folder.read_dir_utf8().map_err(io)? {
            let entry = entry.map_err(io)?;
            // `run` and `evaluation` are no case ids, so their files fall out here too.
            if let Some(id) = entry.file_name().strip_suffix(".json").and_then(|stem| stem.parse().ok()) {
                ids.push(id);
            }
        }
        ids.sort_unstable();
        Ok(ids)
    }
}
