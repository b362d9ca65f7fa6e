//! Attempts at a shard. A scheduler starts a shard again while the process that it believes dead still runs. Each process has a run
//! folder of its own, so neither can damage the answers of the other: the first attempt is `ID-sKofN`, the next `ID-sKofN-a2`.
//!
//! Creating the folder of an attempt is the lease: the file system lets one process create it. The process of the attempt before
//! sees the folder before it writes an artifact, and stops. No clock is read.

use std::io;
use std::num::NonZeroU32;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{NameError, Run, RunId, Side};
use counterproof_store::write::{self, Durability, WriteError};
use counterproof_store::{ASSETS_FOLDER, ReadError, RunReader, RunWriter};

use crate::policy::{RunShard, Shard};

/// The most attempts at one shard. More are a fault of what starts them.
const MOST_ATTEMPTS: u32 = 1000;

/// What a process that was started for a shard is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// An earlier attempt has the answers of all cases.
    Complete(Utf8PathBuf),
    /// The folder of this run is there, with what the earlier attempt had finished. It is resumed.
    Claimed(RunId),
}

/// A shard that could not be claimed.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// The earlier attempt could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The folder of the attempt could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The id of the attempt is not a valid name.
    #[error("the attempt `{id}`: {source}")]
    Name {
        /// The id.
        id: String,
        /// Why it is invalid.
        source: NameError,
    },
    /// There are too many attempts.
    #[error("`{0}` was attempted {MOST_ATTEMPTS} times")]
    TooMany(Utf8PathBuf),
}

/// Claims a shard for this process: creates the folder of the next attempt, and copies the finished cases of the one before.
pub fn claim(out: &Utf8Path, side: Side, shard: &RunShard) -> Result<Claim, ClaimError> {
    let parent = out.join(side.as_str());
    write::create_folder(&parent)?;
    for number in 1..=MOST_ATTEMPTS {
        let id = shard.attempt(number)?;
        let folder = parent.join(id.as_str());
        match write::create_new_folder(&folder) {
            Ok(()) => {
                if number > 1 {
                    copy_finished(&parent.join(shard.attempt(number - 1)?.as_str()), &folder, &id)?;
                }
                return Ok(Claim::Claimed(id));
            }
            Err(error) if error.source.kind() != io::ErrorKind::AlreadyExists => return Err(error.into()),
            // A finished attempt is followed by none.
            Err(_) if is_finished(&folder)? => return Ok(Claim::Complete(folder)),
            Err(_) => {}
        }
    }
    Err(ClaimError::TooMany(parent.join(shard.attempt(1)?.as_str())))
}

/// The attempts at the shards of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attempts {
    /// The folders that have a run document, by shard and attempt.
    pub folders: Vec<Utf8PathBuf>,
    /// The shards without a complete attempt, and how far the last one is: `3/4: not started`, `4/4: 20 of 25 cases`.
    pub unfinished: Vec<String>,
}

/// Finds the attempts at all shards of the run that is to be merged into `run`, which are next to it.
pub fn find_attempts(run: &Utf8Path, shards: NonZeroU32) -> Result<Attempts, ClaimError> {
    let name = run.file_name().unwrap_or_default();
    let run_id: RunId = name.parse().map_err(|source| ClaimError::Name { id: name.to_owned(), source })?;
    let mut attempts = Attempts::default();
    for index in 1..=shards.get() {
        let Ok(shard) = Shard::new(index, shards.get()) else { continue };
        let shard = RunShard { run_id: run_id.clone(), shard };
        let mut state = Some("not started".to_owned());
        for number in 1..=MOST_ATTEMPTS {
            let folder = run.with_file_name(shard.attempt(number)?.as_str());
            if !folder.is_dir() {
                break;
            }
            let reader = match RunReader::open(&folder) {
                Ok(reader) => reader,
                Err(error) if error.is_missing() => continue,
                Err(error) => return Err(error.into()),
            };
            let selected = &reader.run().selected_case_ids;
            let done = selected.iter().filter(|case| reader.case_path(case).is_file()).count();
            if is_complete(&reader) {
                state = None;
            } else if state.is_some() {
                state = Some(format!("{done} of {} cases", selected.len()));
            }
            attempts.folders.push(folder);
        }
        attempts.unfinished.extend(state.map(|state| format!("{}: {state}", shard.shard)));
    }
    Ok(attempts)
}

/// Whether an attempt ended by itself, with an artifact of each of its cases.
pub(super) fn is_complete(reader: &RunReader) -> bool {
    let run = reader.run();
    run.stats.is_some() && run.selected_case_ids.iter().all(|case| reader.case_path(case).is_file())
}

fn is_finished(folder: &Utf8Path) -> Result<bool, ReadError> {
    match RunReader::open(folder) {
        Ok(reader) => Ok(is_complete(&reader)),
        // The process ended before its first request, or is about to write the document.
        Err(error) if error.is_missing() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Copies the artifacts of an attempt, then its assets. An artifact is written after its assets, so none lacks them. What belongs to
/// no artifact is removed when the run is resumed.
fn copy_finished(from: &Utf8Path, to: &Utf8Path, id: &RunId) -> Result<(), ClaimError> {
    let reader = match RunReader::open(from) {
        Ok(reader) => reader,
        Err(error) if error.is_missing() => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    for case in reader.case_ids_on_disk()? {
        write::copy(&reader.case_path(&case), &to.join(format!("{case}.json")), Durability::Cached)?;
    }
    let assets = reader.asset_names()?;
    if !assets.is_empty() {
        write::create_folder(&to.join(ASSETS_FOLDER))?;
    }
    for name in assets {
        write::copy(&from.join(ASSETS_FOLDER).join(&name), &to.join(ASSETS_FOLDER).join(&name), Durability::Cached)?;
    }
    write::sync_tree(to)?;
    // Last, because a folder with a run document is read as a run.
    let document = Run { run_id: id.clone(), stats: None, ..reader.run().clone() };
    write::write_json(&to.join(counterproof_store::RUN_FILE), &document, Durability::Synced)?;
    Ok(())
}

impl RunShard {
    /// The id of the run of an attempt, counted from 1: `ID-s2of4`, then `ID-s2of4-a2`.
    pub fn attempt(&self, number: u32) -> Result<RunId, ClaimError> {
        let again = if number > 1 { format!("-a{number}") } else { String::new() };
        let id = format!("{}-s{}of{}{again}", self.run_id, self.shard.index(), self.shard.count());
        id.parse().map_err(|source| ClaimError::Name { id, source })
    }

    /// The number of the attempt with this id; `None` for the id of another run.
    pub(super) fn number_of(&self, id: &RunId) -> Option<u32> {
        let first = self.attempt(1).ok()?;
        match id.as_str().strip_prefix(first.as_str())? {
            "" => Some(1),
            again => again.strip_prefix("-a")?.parse().ok(),
        }
    }
}

/// Makes the writer of a shard stop once the next attempt has its folder.
pub(crate) fn until_taken_over(writer: RunWriter, shard: Option<&RunShard>, id: &RunId) -> RunWriter {
    let next = shard.and_then(|shard| shard.attempt(shard.number_of(id)?.checked_add(1)?).ok());
    match next {
        Some(next) => {
            let folder = writer.folder().with_file_name(next.as_str());
            writer.until_exists(folder)
        }
        None => writer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard() -> RunShard {
        RunShard { run_id: "night".parse().unwrap(), shard: Shard::new(2, 4).unwrap() }
    }

    #[test]
    fn attempts_are_numbered_in_their_ids() {
        let ids = [1, 2, 12].map(|number| shard().attempt(number).unwrap());
        assert_eq!(ids.each_ref().map(RunId::as_str), ["night-s2of4", "night-s2of4-a2", "night-s2of4-a12"]);
        assert_eq!(ids.map(|id| shard().number_of(&id)), [Some(1), Some(2), Some(12)]);
        assert_eq!(shard().number_of(&"night-s2of40".parse().unwrap()), None);
    }

    #[test]
    fn one_of_many_processes_gets_each_attempt() {
        let folder = tempfile::tempdir().unwrap();
        let out = Utf8Path::from_path(folder.path()).unwrap();
        let claims: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(|| claim(out, Side::New, &shard()).unwrap())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let mut ids: Vec<_> = claims
            .into_iter()
            .map(|claim| match claim {
                Claim::Claimed(id) => shard().number_of(&id).unwrap(),
                Claim::Complete(folder) => panic!("{folder} has no answers"),
            })
            .collect();
        ids.sort_unstable();
        assert_eq!(ids, (1..=16).collect::<Vec<_>>());
    }

    #[test]
    fn a_writer_stops_when_the_next_attempt_has_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let out = Utf8Path::from_path(folder.path()).unwrap();
        let Claim::Claimed(id) = claim(out, Side::New, &shard()).unwrap() else { panic!("nothing was complete") };
        let writer = RunWriter::reopen(out.join("new").join(id.as_str()), Side::New).unwrap();
        let writer = until_taken_over(writer, Some(&shard()), &id);
        assert!(writer.write_manifest("2026-01-01T00:00:00Z").is_ok());
        claim(out, Side::New, &shard()).unwrap();
        let error = writer.write_manifest("2026-01-01T00:00:00Z").unwrap_err();
        assert!(error.source.to_string().contains("night-s2of4-a2"), "{error:?}");
    }
}
