//! Attempts at a shard. A scheduler starts a shard again while the process that it believes dead still runs. Each process has a run
//! folder of its own, so neither can damage the answers of the other: the first attempt is `ID-sKofN`, the next `ID-sKofN-a2`.
//!
//! Creating the folder of an attempt is the lease: the file system lets one process create it. The process of the attempt before
//! sees the folder before it writes an artifact, and stops. No clock is read.
//!
//! A run that is copied to a bucket has its lease there: the folders of this machine are a working copy that no other process sees.

use std::io;
use std::num::NonZeroU32;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{NameError, Run, RunId, Side};
use counterproof_cases::{CaseSpec, Shard};
use counterproof_store::write::{self, Durability, WriteError};
use counterproof_store::{ASSETS_FOLDER, RUN_FILE, ReadError, RunCopy, RunReader, RunWriter};

use super::changes::{Changes, FAILED_RUN, changes};
use crate::policy::RunShard;

/// A complete attempt at a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompleteAttempt {
    /// Its run folder.
    pub folder: Utf8PathBuf,
    /// Whether its run failed: no case was answered, or more failed than allowed.
    pub failed: bool,
}

/// A shard that could not be claimed.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// An earlier attempt could not be read.
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
    /// The cases or settings differ from those of the earlier attempts.
    #[error("the run `{}` was started with other cases or settings: {changes}", run.run_id)]
    Changed {
        /// The document of the newest earlier attempt.
        run: Box<Run>,
        /// The differences.
        changes: Changes,
    },
}

/// Finds the first complete attempt at a shard. If it asked other cases than these, that is an error.
pub fn complete_attempt(
    out: &Utf8Path,
    side: Side,
    shard: &RunShard,
    cases: &[CaseSpec],
) -> Result<Option<CompleteAttempt>, ClaimError> {
    for (_, folder) in attempts(&out.join(side.as_str()), shard)? {
        if let Some(reader) = opened(&folder)?.filter(is_complete) {
            let cases = cases.iter().filter(|case| shard.shard.contains(&case.id));
            let digests = cases.map(|case| (case.id.clone(), case.input_digest())).collect();
            let changes = changes(reader.run(), &Run { case_digests: Some(digests), ..reader.run().clone() });
            if !changes.is_empty() {
                return Err(ClaimError::Changed { run: Box::new(reader.run().clone()), changes });
            }
            let failed = reader.run().extra.contains_key(FAILED_RUN);
            return Ok(Some(CompleteAttempt { folder, failed }));
        }
    }
    Ok(None)
}

/// Claims a shard for this process: creates the folder of the next attempt in `parent`, and copies the finished cases of the newest
/// one that has some. Returns the id of the attempt, whose run is then resumed. `fresh` is the document of a new run. If it has
/// other cases or settings than the earlier attempt, nothing is created, and that attempt goes on. With `copy`, the attempts are
/// those that it has.
pub(crate) fn claim(
    parent: &Utf8Path,
    shard: &RunShard,
    fresh: &Run,
    copy: Option<&dyn RunCopy>,
) -> Result<RunId, ClaimError> {
    write::create_folder(parent)?;
    let failed = |folder: &Utf8Path| {
        let path = folder.to_owned();
        move |source| ClaimError::Read(ReadError::Io { path, source })
    };
    loop {
        let earlier = match copy {
            None => attempts(parent, shard)?,
            Some(copy) => numbered(parent, shard, &copy.run_folders(parent).map_err(failed(parent))?),
        };
        let mut newest = None;
        for (_, folder) in earlier.iter().rev() {
            if let Some(copy) = copy {
                copy.fetch_document(&folder.join(RUN_FILE)).map_err(failed(folder))?;
            }
            newest = opened(folder)?;
            if newest.is_some() {
                break;
            }
        }
        if let Some(newest) = &newest {
            let changes = changes(newest.run(), fresh);
            if !changes.is_empty() {
                return Err(ClaimError::Changed { run: Box::new(newest.run().clone()), changes });
            }
        }
        let id = shard.attempt(earlier.last().map_or(0, |(number, _)| *number).saturating_add(1))?;
        let folder = parent.join(id.as_str());
        let is_created = match copy {
            None => create(&folder)?,
            Some(copy) => copy.claim(&folder).map_err(failed(&folder))?,
        };
        // Otherwise another process was faster, and its attempt is the earlier one now.
        if is_created {
            write::create_folder(&folder)?;
            if let Some(newest) = newest {
                // After the claim, from which on the earlier process finishes no case.
                copy.map_or(Ok(()), |copy| copy.fetch(newest.folder())).map_err(failed(newest.folder()))?;
                copy_finished(&newest, &folder, &id)?;
                copy.map_or(Ok(()), |copy| put_finished(&folder, copy)).map_err(failed(&folder))?;
            }
            return Ok(id);
        }
    }
}

/// Creates the folder of an attempt. Returns false if it exists.
fn create(folder: &Utf8Path) -> Result<bool, WriteError> {
    match write::create_new_folder(folder) {
        Ok(()) => Ok(true),
        Err(error) if error.source.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Puts the files of a new attempt where its run is copied to: the run document last.
fn put_finished(folder: &Utf8Path, copy: &dyn RunCopy) -> io::Result<()> {
    let mut files = Vec::new();
    for folder in [folder.to_owned(), folder.join(ASSETS_FOLDER)] {
        let entries = match folder.read_dir_utf8() {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_file() && entry.file_name() != RUN_FILE {
                files.push(entry.into_path());
            }
        }
    }
    copy.put(&files)?;
    copy.put(&[folder.join(RUN_FILE)])
}

/// The attempts at a shard whose folders exist, by number.
fn attempts(parent: &Utf8Path, shard: &RunShard) -> Result<Vec<(u32, Utf8PathBuf)>, ReadError> {
    let failed = |source| ReadError::Io { path: parent.to_owned(), source };
    let entries = match parent.read_dir_utf8() {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let names = entries.map(|entry| entry.map(|entry| entry.file_name().to_owned())).collect::<io::Result<Vec<_>>>();
    Ok(numbered(parent, shard, &names.map_err(failed)?))
}

/// The attempts at a shard among the names of folders, by number.
fn numbered(parent: &Utf8Path, shard: &RunShard, names: &[String]) -> Vec<(u32, Utf8PathBuf)> {
    let number = |name: &String| name.parse().ok().and_then(|id| shard.number_of(&id));
    let mut found: Vec<_> = names.iter().filter_map(|name| Some((number(name)?, parent.join(name)))).collect();
    found.sort_unstable();
    found
}

/// Opens an attempt. `None` if its process has not written the run document, so has not sent a request.
fn opened(folder: &Utf8Path) -> Result<Option<RunReader>, ReadError> {
    match RunReader::open(folder) {
        Ok(reader) => Ok(Some(reader)),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The attempts at the shards of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attempts {
    /// The folders that have a run document, by shard and attempt.
    pub folders: Vec<Utf8PathBuf>,
    /// The shards without a complete attempt, and how far the last one is: `3/4: not started`, `4/4: 20 of 25 cases`.
    pub unfinished: Vec<String>,
}

/// Finds the attempts at all shards of the run that `run` will be merged into, which are next to it.
pub fn find_attempts(run: &Utf8Path, shards: NonZeroU32) -> Result<Attempts, ClaimError> {
    let name = run.file_name().unwrap_or_default();
    let run_id: RunId = name.parse().map_err(|source| ClaimError::Name { id: name.to_owned(), source })?;
    let parent = run.parent().filter(|parent| !parent.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
    let mut found = Attempts::default();
    for index in 1..=shards.get() {
        let Ok(shard) = Shard::new(index, shards.get()) else { continue };
        let shard = RunShard { run_id: run_id.clone(), shard };
        let mut newest = None;
        let mut is_done = false;
        for (_, folder) in attempts(parent, &shard)? {
            let Some(reader) = opened(&folder)? else { continue };
            is_done |= is_complete(&reader);
            newest = Some(reader);
            found.folders.push(folder);
        }
        if !is_done {
            found.unfinished.push(format!("{}: {}", shard.shard, progress(newest.as_ref())));
        }
    }
    Ok(found)
}

fn progress(newest: Option<&RunReader>) -> String {
    let Some(reader) = newest else { return "not started".to_owned() };
    let selected = &reader.run().selected_case_ids;
    if let Some(cases) = not_run(reader.run()) {
        return format!("{cases} of {} cases not run", selected.len());
    }
    let done = selected.iter().filter(|case| reader.case_path(case).is_file()).count();
    format!("{done} of {} cases", selected.len())
}

/// How many cases a run skipped, because a limit or failures ended it.
fn not_run(run: &Run) -> Option<u64> {
    run.stats.as_ref()?.extra.get("cases_not_run")?.as_u64().filter(|cases| *cases > 0)
}

/// Whether the process of an attempt finished the run: no case was skipped, and each has an artifact.
pub(super) fn is_complete(reader: &RunReader) -> bool {
    let run = reader.run();
    let is_there = |case| reader.case_path(case).is_file();
    run.stats.is_some() && not_run(run).is_none() && run.selected_case_ids.iter().all(is_there)
}

/// Copies the artifacts of an attempt, then its assets. An artifact is written after its assets, so each copied one has them. What
/// belongs to no artifact is removed when the run is resumed.
fn copy_finished(from: &RunReader, to: &Utf8Path, id: &RunId) -> Result<(), ClaimError> {
    let cases = from.case_ids_on_disk()?;
    for case in &cases {
        copy_if_there(&from.case_path(case), &to.join(format!("{case}.json")))?;
    }
    let assets = from.asset_names()?;
    if !assets.is_empty() {
        write::create_folder(&to.join(ASSETS_FOLDER))?;
    }
    for name in assets {
        copy_if_there(&from.folder().join(ASSETS_FOLDER).join(&name), &to.join(ASSETS_FOLDER).join(&name))?;
    }
    // A case that runs again loses its artifact first, then its assets.
    for case in cases.iter().filter(|case| !from.case_path(case).exists()) {
        write::remove(&to.join(format!("{case}.json")))?;
    }
    write::sync_tree(to)?;
    // Last, because a folder with a run document is read as a run.
    let document = Run { run_id: id.clone(), stats: None, ..from.run().clone() };
    write::write_json(&to.join(RUN_FILE), &document, Durability::Synced)?;
    Ok(())
}

/// Copies a file, unless the process that it belongs to has removed it.
fn copy_if_there(from: &Utf8Path, to: &Utf8Path) -> Result<(), WriteError> {
    match write::copy(from, to, Durability::Cached) {
        Err(error) if error.source.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result.map(drop),
    }
}

impl RunShard {
    /// The id of the run of an attempt, counted from 1: `ID-s2of4`, then `ID-s2of4-a2`.
    pub fn attempt(&self, number: u32) -> Result<RunId, ClaimError> {
        let again = if number > 1 { format!("-a{number}") } else { String::new() };
        let id = format!("{}-s{}of{}{again}", self.run_id, self.shard.index(), self.shard.count());
        id.parse().map_err(|source| ClaimError::Name { id, source })
    }

    /// The number of the attempt with this id; `None` for the id of another run.
    pub fn number_of(&self, id: &RunId) -> Option<u32> {
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
    use counterproof_store::TakenOver;

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

    /// Claims the shard as a run of no cases.
    fn claimed(parent: &Utf8Path) -> RunId {
        claim(parent, &shard(), &document("night-s2of4"), None).unwrap()
    }

    fn document(id: &str) -> Run {
        serde_json::from_value(serde_json::json!({
            "schema_version": "run.v1", "run_id": id, "version": "new", "generated_at": "2026-01-01T00:00:00Z",
            "base_url": "http://a", "cases_path": "c.json", "out_dir": "../..", "selected_case_ids": ["c1", "c2"],
            "runner_version": "counterproof 0.1.0", "case_digests": {},
        }))
        .unwrap()
    }

    #[test]
    fn one_of_many_processes_gets_each_attempt() {
        let folder = tempfile::tempdir().unwrap();
        let parent = Utf8Path::from_path(folder.path()).unwrap();
        let claims: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(|| claimed(parent))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let mut numbers: Vec<_> = claims.iter().map(|id| shard().number_of(id).unwrap()).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (1..=16).collect::<Vec<_>>());
    }

    /// A bucket that is a folder, and a working copy of it.
    #[derive(Debug)]
    struct FolderCopy {
        bucket: Utf8PathBuf,
        local: Utf8PathBuf,
        /// A file that another process writes there just before a claim.
        late: Option<Utf8PathBuf>,
    }

    impl FolderCopy {
        fn there(&self, path: &Utf8Path) -> Utf8PathBuf {
            self.bucket.join(path.strip_prefix(&self.local).unwrap())
        }
    }

    impl RunCopy for FolderCopy {
        fn put(&self, files: &[Utf8PathBuf]) -> io::Result<()> {
            for file in files {
                let there = self.there(file);
                std::fs::create_dir_all(there.parent().unwrap())?;
                write::copy(file, &there, Durability::Cached).map_err(|error| error.source)?;
            }
            Ok(())
        }

        fn remove(&self, file: &Utf8Path) -> io::Result<()> {
            std::fs::remove_file(self.there(file))
        }

        fn claim(&self, folder: &Utf8Path) -> io::Result<bool> {
            if let Some(late) = &self.late {
                write::write(late, b"{}", Durability::Cached).map_err(|error| error.source)?;
            }
            create(&self.there(folder)).map_err(|error| error.source)
        }

        fn is_claimed(&self, folder: &Utf8Path) -> io::Result<bool> {
            Ok(self.there(folder).exists())
        }

        fn run_folders(&self, parent: &Utf8Path) -> io::Result<Vec<String>> {
            let names = self.there(parent).read_dir_utf8()?.map(|entry| Ok(entry?.file_name().to_owned()));
            let is_whole =
                |name: &io::Result<String>| !name.as_ref().is_ok_and(|name| name.starts_with(write::TEMPORARY_PREFIX));
            names.filter(is_whole).collect()
        }

        fn fetch_document(&self, file: &Utf8Path) -> io::Result<bool> {
            write::create_folder(file.parent().unwrap()).map_err(|error| error.source)?;
            let is_there = self.there(file).exists();
            if is_there {
                write::copy(&self.there(file), file, Durability::Cached).map_err(|error| error.source)?;
            }
            Ok(is_there)
        }

        fn fetch(&self, folder: &Utf8Path) -> io::Result<()> {
            write::create_folder(folder).map_err(|error| error.source)?;
            for name in self.run_folders(folder)? {
                let from = self.there(folder).join(&name);
                write::copy(&from, &folder.join(name), Durability::Cached).map_err(|error| error.source)?;
            }
            Ok(())
        }
    }

    #[test]
    fn a_case_that_the_earlier_process_finished_before_the_claim_is_copied() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let bucket = root.join("bucket");
        let earlier = bucket.join("night-s2of4");
        write::create_folder(&earlier).unwrap();
        write::write_json(&earlier.join(RUN_FILE), &document("night-s2of4"), Durability::Cached).unwrap();
        let copy = FolderCopy { bucket, local: root.join("local"), late: Some(earlier.join("c1.json")) };
        let id = claim(&copy.local, &shard(), &document("night-s2of4"), Some(&copy)).unwrap();
        assert!(copy.local.join(id.as_str()).join("c1.json").is_file());
    }

    #[test]
    fn processes_with_working_copies_of_their_own_get_one_attempt_each_and_go_on_from_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let bucket = root.join("bucket");
        write::create_folder(&bucket).unwrap();
        let copies: Vec<_> = (0..16)
            .map(|number| FolderCopy { bucket: bucket.clone(), local: root.join(format!("{number}")), late: None })
            .collect();
        let claim = |copy: &FolderCopy| claim(&copy.local, &shard(), &document("night-s2of4"), Some(copy)).unwrap();
        let first = claim(&copies[0]);
        let writer = RunWriter::reopen(copies[0].local.join(first.as_str()), Side::New).unwrap();
        let copy = FolderCopy { bucket: bucket.clone(), local: copies[0].local.clone(), late: None };
        let writer = until_taken_over(writer.copied_to(Some(std::sync::Arc::new(copy))), Some(&shard()), &first);
        writer.write_run(&document("night-s2of4")).unwrap();
        write::write(&writer.folder().join("c1.json"), b"{}", Durability::Cached).unwrap();
        copies[0].put(&[writer.folder().join("c1.json")]).unwrap();
        let others: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = copies[1..].iter().map(|copy| scope.spawn(|| claim(copy))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let mut numbers: Vec<_> = others.iter().map(|id| shard().number_of(id).unwrap()).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (2..=16).collect::<Vec<_>>());
        for id in others {
            assert!(bucket.join(id.as_str()).join("c1.json").is_file(), "{id} lacks the finished case");
        }
        let error = writer.write_run(&document("night-s2of4")).unwrap_err();
        assert!(TakenOver::of(&error).is_some(), "{error:?}");
    }

    #[test]
    fn the_newest_attempt_with_a_document_is_copied_without_unfinished_files() {
        let folder = tempfile::tempdir().unwrap();
        let parent = Utf8Path::from_path(folder.path()).unwrap();
        let first = parent.join(claimed(parent).as_str());
        write::write_json(&first.join(RUN_FILE), &document("night-s2of4"), Durability::Cached).unwrap();
        write::write(&first.join("c1.json"), b"{}", Durability::Cached).unwrap();
        write::create_folder(&first.join(ASSETS_FOLDER)).unwrap();
        write::write(&first.join("assets/body.json"), b"{}", Durability::Cached).unwrap();
        let unfinished = format!("assets/{}x", write::TEMPORARY_PREFIX);
        write::write(&first.join(&unfinished), b"{", Durability::Cached).unwrap();
        // The process of the second attempt ends before it has copied anything.
        write::create_new_folder(&parent.join("night-s2of4-a2")).unwrap();
        let third = parent.join(claimed(parent).as_str());
        assert_eq!(third.file_name(), Some("night-s2of4-a3"));
        assert!(third.join("c1.json").exists() && third.join("assets/body.json").exists());
        assert!(!third.join(unfinished).exists());
        let found = find_attempts(&parent.join("night"), NonZeroU32::new(4).unwrap()).unwrap();
        assert_eq!(found.folders.len(), 2);
        assert_eq!(found.unfinished[..2], ["1/4: not started", "2/4: 1 of 2 cases"]);
    }

    #[test]
    fn an_attempt_with_cases_that_were_not_run_is_not_complete() {
        let folder = tempfile::tempdir().unwrap();
        let parent = Utf8Path::from_path(folder.path()).unwrap();
        let first = parent.join("new").join("night-s2of4");
        for case in ["c1", "c2"] {
            write::create_folder(&first).unwrap();
            write::write(&first.join(format!("{case}.json")), b"{}", Durability::Cached).unwrap();
        }
        let complete = |stats: serde_json::Value| {
            let run = Run { stats: serde_json::from_value(stats).unwrap(), ..document("night-s2of4") };
            write::write_json(&first.join(RUN_FILE), &run, Durability::Cached).unwrap();
            complete_attempt(parent, Side::New, &shard(), &[]).unwrap().is_some()
        };
        assert!(!complete(serde_json::Value::Null));
        assert!(!complete(serde_json::json!({"cases_total": 2, "cases_not_run": 1})));
        assert!(complete(serde_json::json!({"cases_total": 2})));
    }

    #[test]
    fn a_writer_stops_when_the_next_attempt_has_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let parent = Utf8Path::from_path(folder.path()).unwrap();
        let id = claimed(parent);
        let writer = RunWriter::reopen(parent.join(id.as_str()), Side::New).unwrap();
        let writer = until_taken_over(writer, Some(&shard()), &id);
        assert!(writer.write_manifest("2026-01-01T00:00:00Z").is_ok());
        claimed(parent);
        let error = writer.write_manifest("2026-01-01T00:00:00Z").unwrap_err();
        assert!(TakenOver::of(&error).is_some_and(|taken| taken.0.ends_with("night-s2of4-a2")), "{error:?}");
    }
}
