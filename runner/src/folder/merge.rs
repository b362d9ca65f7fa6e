//! Merges shards into one run. They must form one complete run: same cases, same settings, each case once. Of several attempts at
//! a shard the first complete one is taken.

use std::collections::{BTreeMap, HashSet};
use std::{fs, io};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{Case, CaseId, Extra, NameError, Outcome, Run, RunId, ShardOf, Side, Stats};
use counterproof_cases::{Shard, cases_digest};
use counterproof_store::write::{self, Durability, WriteError};
use counterproof_store::{
    ASSETS_FOLDER, CreateError, RUN_ARCHIVE, RUN_FILE, ReadError, RunReader, RunWriter, StagedRun, pack_run, read_file,
};
use jiff::{SpanRound, Timestamp, Unit};
use serde_json::{Value, json};

use super::changes::{Changes, FAILED_RUN, differing_settings};
use super::changes::{absolute, rebase_path};
use super::salvage;
use super::salvage::was_skipped;
use super::take_over::is_complete;
use crate::policy::RunShard;

/// The result of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// The run folder.
    pub folder: Utf8PathBuf,
    /// The number of cases.
    pub cases: usize,
    /// How many of them failed.
    pub failed: usize,
    /// The number of shards.
    pub shards: usize,
    /// The folders that are not in the run, because another attempt at their shard is.
    pub left_out: Vec<Utf8PathBuf>,
}

/// A run folder of one shard.
struct ShardFolder {
    reader: RunReader,
    shard: ShardOf,
}

/// A case of the whole run.
struct MergedCase {
    id: CaseId,
    /// The index of its shard among the shard folders.
    shard: usize,
}

/// A validated merge: one complete run, before anything is written.
struct MergePlan<'a> {
    shard_folders: &'a [ShardFolder],
    /// Every case, in the order of the whole run.
    cases: Vec<MergedCase>,
    run_id: RunId,
    /// The folder of the merged run.
    out: &'a Utf8Path,
}

/// The numbers of cases of a merged run.
#[derive(Debug, Default)]
struct MergedCounts {
    failed: usize,
    retried: usize,
    attempts: usize,
    skipped: usize,
}

/// How the files of a merged run are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunForm {
    /// Each is a file of the run folder.
    Files,
    /// All but the run document are in one archive.
    Packed,
}

/// Merges shards into a new run folder, which must not exist. The new folder is complete or absent.
pub fn merge(shards: &[Utf8PathBuf], out: &Utf8Path, form: RunForm) -> Result<Merged, MergeError> {
    let (shard_folders, left_out) = open(shards)?;
    let first = &shard_folders[0];
    let run_id = run_id(out, first.reader.run())?;
    if out.exists() {
        return Err(CreateError::Exists(out.to_owned()).into());
    }
    let plan = MergePlan { shard_folders: &shard_folders, cases: order(&shard_folders)?, run_id, out };

    let staged = StagedRun::create_at(out, first.reader.run().version, "merge")?;
    let counts = plan.write(staged.writer())?;
    if form == RunForm::Packed {
        pack_files(staged.writer().folder())?;
    }
    staged.publish()?;
    Ok(Merged {
        folder: out.to_owned(),
        cases: plan.cases.len(),
        failed: counts.failed,
        shards: shard_folders.len(),
        left_out,
    })
}

/// Replaces all files of a run folder but the run document with one archive.
fn pack_files(folder: &Utf8Path) -> Result<(), MergeError> {
    let mut names = Vec::new();
    for part in ["", ASSETS_FOLDER] {
        let of = folder.join(part);
        let read = |source| ReadError::Io { path: of.clone(), source };
        if !of.is_dir() {
            continue;
        }
        for entry in of.read_dir_utf8().map_err(read)? {
            let entry = entry.map_err(read)?;
            let is_run_file = entry.file_name() != RUN_FILE && !entry.file_name().starts_with('.');
            if is_run_file && entry.file_type().map_err(read)?.is_file() {
                let slash = if part.is_empty() { "" } else { "/" };
                names.push(format!("{part}{slash}{}", entry.file_name()));
            }
        }
    }
    names.sort_unstable();
    pack_run(folder, &names, &folder.join(RUN_ARCHIVE))?;
    for name in &names {
        write::remove(&folder.join(name))?;
    }
    let assets = folder.join(ASSETS_FOLDER);
    if assets.is_dir() {
        fs::remove_dir(&assets).map_err(|source| WriteError { path: assets.clone(), source })?;
    }
    Ok(())
}

/// Returns the run id, which is the name of the new folder.
fn run_id(out: &Utf8Path, shard: &Run) -> Result<RunId, MergeError> {
    let name = out.file_name().unwrap_or_default();
    let invalid = |source| ShardMismatch::Name { folder: out.to_owned(), source };
    let id: RunId = name.parse().map_err(invalid)?;
    id.check_new().map_err(invalid)?;
    let above: Option<Side> = out.parent().and_then(Utf8Path::file_name).and_then(|name| name.parse().ok());
    match above {
        Some(side) if side != shard.version => {
            Err(ShardMismatch::Side { folder: out.to_owned(), side, of_shards: shard.version }.into())
        }
        _ => Ok(id),
    }
}

/// The folder of each shard in the order of the shards, and the folders of other attempts. All are of one run.
fn open(shards: &[Utf8PathBuf]) -> Result<(Vec<ShardFolder>, Vec<Utf8PathBuf>), MergeError> {
    // By number, so that the order of the arguments does not matter.
    let mut attempts: BTreeMap<u64, Vec<ShardFolder>> = BTreeMap::new();
    for folder in shards {
        let reader = RunReader::open(folder)?;
        let Some(shard) = reader.run().shard.clone() else {
            return Err(ShardMismatch::NotAShard(folder.clone()).into());
        };
        let index = shard.index.get();
        let of_shard = attempts.entry(index).or_default();
        // Not two attempts but one folder named twice, or a copy of it.
        if let Some(twin) = of_shard.iter().find(|other| other.reader.run().run_id == reader.run().run_id) {
            let (first, second) = (twin.reader.folder().to_owned(), folder.clone());
            if twin.shard.run_id == shard.run_id && twin.shard.count == shard.count {
                return Err(ShardMismatch::Twice { first, second, index }.into());
            }
        }
        of_shard.push(ShardFolder { reader, shard });
    }
    let Some(count) = attempts.values().flatten().next().map(|shard_folder| shard_folder.shard.count.get()) else {
        return Err(ShardMismatch::Empty.into());
    };
    // Only the first ones: a wrong count could make the message endless.
    let missing: Vec<_> = (1..=count).filter(|index| !attempts.contains_key(index)).take(20).collect();
    // Shards of different counts belong to different runs. `check_settings` explains that better than missing numbers.
    if !missing.is_empty() && attempts.values().flatten().all(|shard_folder| shard_folder.shard.count.get() == count) {
        let missing: Vec<_> = missing.iter().map(|index| format!("{index}/{count}")).collect();
        return Err(ShardMismatch::Missing(missing).into());
    }
    check_settings(&attempts.values().flatten().collect::<Vec<_>>())?;
    let (mut chosen, mut left_out) = (Vec::new(), Vec::new());
    for mut of_shard in attempts.into_values() {
        // Folders with other names stay in the order of the arguments.
        of_shard.sort_by_key(|attempt| attempt.number().unwrap_or(u32::MAX));
        let complete = of_shard.iter().position(|attempt| is_complete(&attempt.reader)).unwrap_or(0);
        chosen.push(of_shard.remove(complete));
        left_out.extend(of_shard.into_iter().map(|attempt| attempt.reader.folder().to_owned()));
    }
    Ok((chosen, left_out))
}

impl ShardFolder {
    /// The number of the attempt, by the name of its run.
    fn number(&self) -> Option<u32> {
        let [index, count] = [&self.shard.index, &self.shard.count].map(|number| u32::try_from(number.get()).ok());
        let shard = Shard::new(index?, count?).ok()?;
        RunShard { run_id: self.shard.run_id.clone(), shard }.number_of(&self.reader.run().run_id)
    }
}

/// Rejects shards of different runs: other cases, settings, sides, numbers of shards or commits.
fn check_settings(shard_folders: &[&ShardFolder]) -> Result<(), MergeError> {
    let [first, others @ ..] = shard_folders else { return Ok(()) };
    for shard_folder in others {
        let changes = differing_settings(first.reader.run(), shard_folder.reader.run());
        if !changes.is_empty() {
            let (first, second) = (first.reader.folder().to_owned(), shard_folder.reader.folder().to_owned());
            return Err(ShardMismatch::DifferentRuns { first, second, changes }.into());
        }
    }
    Ok(())
}

/// Returns every case in the order of the whole run. Fails unless the shards form exactly the run that was split.
fn order(shard_folders: &[ShardFolder]) -> Result<Vec<MergedCase>, MergeError> {
    let mut positions: BTreeMap<u64, MergedCase> = BTreeMap::new();
    let mut seen = HashSet::new();
    for (number, shard_folder) in shard_folders.iter().enumerate() {
        let (run, shard) = (shard_folder.reader.run(), &shard_folder.shard);
        if run.selected_case_ids.len() != shard.positions.len() {
            return Err(ShardMismatch::Positions(shard_folder.reader.folder().to_owned()).into());
        }
        for (case, position) in run.selected_case_ids.iter().zip(&shard.positions) {
            // Ids that differ only in case would be one file on some systems.
            if !seen.insert(case.collision_key()) {
                return Err(ShardMismatch::DuplicateCase(case.clone()).into());
            }
            positions.insert(position.get(), MergedCase { id: case.clone(), shard: number });
        }
    }
    let order: Vec<_> = positions.into_values().collect();
    let total = shard_folders[0].shard.cases_total.get();
    if order.len() as u64 != total {
        return Err(ShardMismatch::CaseCount { found: order.len(), expected: total }.into());
    }
    // The digest of all cases, computed from the digests of each: it detects shards of different case files that happen to
    // have the same ids.
    let digest_of =
        |case: &MergedCase| shard_folders[case.shard].reader.run().case_digests.as_ref()?.get(&case.id).copied();
    let digests: Option<Vec<_>> = order.iter().map(digest_of).collect();
    let whole = digests.map(|digests| cases_digest(order.iter().map(|case| &case.id).zip(&digests)));
    if whole.is_none() || whole != shard_folders[0].reader.run().cases_digest {
        return Err(ShardMismatch::OtherCases.into());
    }
    Ok(order)
}

impl MergePlan<'_> {
    /// Writes all files of the new folder.
    fn write(&self, writer: &RunWriter) -> Result<MergedCounts, MergeError> {
        let mut counts = MergedCounts::default();
        for case in &self.cases {
            counts.add(&self.copy_case(writer, case)?);
        }
        for shard_folder in self.shard_folders {
            copy_assets(writer, shard_folder)?;
        }
        let document = Run { stats: Some(self.stats(&counts)), ..self.document() };
        // Not the time of the merge: merging the same shards again writes the same bytes.
        let newest = self.runs().map(|run| run.generated_at.as_str()).max().unwrap_or_default();
        writer.write_manifest(newest)?;
        // Last, because a folder with a run document is read as a run.
        writer.write_run(&document)?;
        Ok(counts)
    }

    fn runs(&self) -> impl Iterator<Item = &Run> {
        self.shard_folders.iter().map(|shard_folder| shard_folder.reader.run())
    }

    /// Copies the artifact of a case, and returns it.
    fn copy_case(&self, writer: &RunWriter, case: &MergedCase) -> Result<Case, MergeError> {
        let reader = &self.shard_folders[case.shard].reader;
        let artifact = reader.read_case(&case.id).map_err(|error| {
            if error.is_missing() {
                let folder = reader.folder().to_owned();
                MergeError::Shards(ShardMismatch::Incomplete { folder, case: case.id.clone() })
            } else {
                MergeError::Read(error)
            }
        })?;
        // The bytes are copied, not written from the parsed artifact: fields that this version does not know are preserved.
        let target = writer.folder().join(format!("{}.json", case.id));
        write::copy(&reader.case_path(&case.id), &target, Durability::Synced)?;
        Ok(artifact)
    }

    fn stats(&self, counts: &MergedCounts) -> Stats {
        let mut extra: Extra = [
            ("cases_retried".to_owned(), counts.retried.into()),
            ("attempts_total".to_owned(), counts.attempts.into()),
        ]
        .into_iter()
        .collect();
        if counts.skipped > 0 {
            extra.insert("cases_not_run".to_owned(), counts.skipped.into());
        }
        Stats {
            cases_total: Some(self.cases.len().into()),
            cases_completed: Some((self.cases.len() - counts.failed).into()),
            cases_failed: Some(counts.failed.into()),
            duration_ms: duration(self.shard_folders).map(Into::into),
            extra,
        }
    }

    /// Returns the document of the whole run, without statistics.
    fn document(&self) -> Run {
        let first = self.shard_folders[0].reader.run();
        let oldest = self.runs().min_by(|a, b| a.generated_at.cmp(&b.generated_at));
        let (from, to) = (absolute(self.shard_folders[0].reader.folder()), absolute(self.out));
        let mut extra = first.extra.clone();
        // The resumes of the first shard are not resumes of the whole run; each shard lists its resumes below.
        extra.remove("resumes");
        // A part of the rate of the whole run.
        extra.remove("rate");
        extra.remove(FAILED_RUN);
        if self.runs().any(|run| run.extra.contains_key(FAILED_RUN)) {
            extra.insert(FAILED_RUN.to_owned(), true.into());
        }
        extra.insert("merged_from".to_owned(), self.runs().map(shard_summary).collect::<Vec<_>>().into());
        Run {
            run_id: self.run_id.clone(),
            generated_at: oldest.unwrap_or(first).generated_at.clone(),
            cases_path: rebase_path(&first.cases_path, &from, &to),
            out_dir: rebase_path("../..", &to, &to),
            selected_case_ids: self.cases.iter().map(|case| case.id.clone()).collect(),
            case_digests: Some(self.runs().filter_map(|run| run.case_digests.clone()).flatten().collect()),
            // Shards of earlier versions have none.
            expectation_digests: self
                .runs()
                .map(|run| run.expectation_digests.clone())
                .collect::<Option<Vec<_>>>()
                .map(|digests| digests.into_iter().flatten().collect()),
            shard: None,
            stats: None,
            extra,
            ..first.clone()
        }
    }
}

impl MergedCounts {
    fn add(&mut self, artifact: &Case) {
        let attempts = artifact.attempts.as_ref().map_or(0, Vec::len);
        self.failed += usize::from(matches!(artifact.outcome, Outcome::RunnerError(_)));
        self.skipped += usize::from(was_skipped(artifact));
        self.retried += usize::from(attempts > 1);
        self.attempts += attempts;
    }
}

/// What the merged document records of the run of one shard.
fn shard_summary(run: &Run) -> Value {
    let Run { run_id, generated_at, stats, extra, .. } = run;
    let mut shard = json!({"run_id": run_id, "generated_at": generated_at});
    if let Some(duration) = stats.as_ref().and_then(|stats| stats.duration_ms.as_ref()) {
        shard["duration_ms"] = json!(duration);
    }
    if let Some(resumes) = extra.get("resumes") {
        shard["resumes"] = resumes.clone();
    }
    shard
}

fn copy_assets(writer: &RunWriter, shard_folder: &ShardFolder) -> Result<(), MergeError> {
    let reader = &shard_folder.reader;
    let cases = reader.run().selected_case_ids.iter().cloned().collect();
    for asset in salvage::list_assets(reader, &cases)? {
        let from = reader.folder().join(ASSETS_FOLDER).join(&asset.name);
        let to = writer.folder().join(ASSETS_FOLDER).join(&asset.name);
        if to.exists() {
            return Err(ShardMismatch::DuplicateAsset(asset.name).into());
        }
        let read = |source| ReadError::Io { path: from.clone(), source };
        let (mut source, _) = read_file::open(&from).map_err(read)?;
        let mut copy = writer.unnamed_asset()?;
        io::copy(&mut source, &mut copy).map_err(|source| WriteError { path: to.clone(), source })?;
        let written = writer.name_asset(copy, &asset.name, asset.kind, asset.case.as_ref())?;
        // The new manifest records the digest of the copy, and would hide that the asset had changed.
        if asset.sha256.is_some_and(|listed| Some(listed) != written.sha256) {
            return Err(ShardMismatch::ChangedAsset(from).into());
        }
    }
    Ok(())
}

/// Returns the time from the first start to the last end of a shard, in milliseconds.
fn duration(shard_folders: &[ShardFolder]) -> Option<u64> {
    let mut spans = Vec::new();
    for shard_folder in shard_folders {
        let run = shard_folder.reader.run();
        let start: Timestamp = run.generated_at.parse().ok()?;
        let took = run.stats.as_ref()?.duration_ms.as_ref()?.as_f64();
        spans.push((start, start.checked_add(std::time::Duration::try_from_secs_f64(took / 1000.0).ok()?).ok()?));
    }
    // Shards run at the same time, so their durations are not added.
    let start = spans.iter().map(|(start, _)| *start).min()?;
    let end = spans.iter().map(|(_, end)| *end).max()?;
    let span = end.since(start).ok()?.round(SpanRound::new().largest(Unit::Millisecond)).ok()?;
    u64::try_from(span.get_milliseconds()).ok()
}

/// Why shards could not be merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// A shard, or one of its files, could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The shards do not form one complete run.
    #[error(transparent)]
    Shards(#[from] ShardMismatch),
    /// The new run folder could not be created.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Why shards do not form one complete run.
#[derive(Debug, thiserror::Error)]
pub enum ShardMismatch {
    /// No shard was given.
    #[error("there are no shards")]
    Empty,
    /// The name of the new folder is not a run id.
    #[error("`{folder}` is not a valid name of a run: {source}")]
    Name {
        /// The new folder.
        folder: Utf8PathBuf,
        /// Why the name is invalid.
        source: NameError,
    },
    /// The new folder belongs to the other side.
    #[error("`{folder}` is in the folder of side `{side}`, but the shards are of side `{of_shards}`")]
    Side {
        /// The new folder.
        folder: Utf8PathBuf,
        /// The side of its parent folder.
        side: Side,
        /// The side of the shards.
        of_shards: Side,
    },
    /// A run is not a shard.
    #[error("`{0}` is not a shard: its run.json has no `shard`")]
    NotAShard(Utf8PathBuf),
    /// A folder was given twice.
    #[error("`{first}` and `{second}` are both shard {index}, with the same run ID")]
    Twice {
        /// One of the folders.
        first: Utf8PathBuf,
        /// The other folder.
        second: Utf8PathBuf,
        /// The number of the shard.
        index: u64,
    },
    /// Shards are missing.
    #[error("shards are missing: {}", .0.join(", "))]
    Missing(Vec<String>),
    /// Two shards are of different runs.
    #[error("`{first}` and `{second}` are not shards of one run: {changes}")]
    DifferentRuns {
        /// One of the shards.
        first: Utf8PathBuf,
        /// The other shard.
        second: Utf8PathBuf,
        /// How their settings differ.
        changes: Changes,
    },
    /// The positions of a shard's cases in the whole run are not recorded.
    #[error("`{0}` does not record the position of each of its cases")]
    Positions(Utf8PathBuf),
    /// A case is in more than one shard.
    #[error("the case `{0}` is in more than one shard")]
    DuplicateCase(CaseId),
    /// The shards have more or fewer cases than the whole run.
    #[error("the shards have {found} cases in total, but the run has {expected}")]
    CaseCount {
        /// Cases of all shards.
        found: usize,
        /// Cases of the whole run.
        expected: u64,
    },
    /// The cases differ from the cases of the whole run.
    #[error("the cases of the shards differ from those of the whole run")]
    OtherCases,
    /// A case has no artifact.
    #[error("`{folder}` is not complete: the case `{case}` has no artifact")]
    Incomplete {
        /// The shard.
        folder: Utf8PathBuf,
        /// The case.
        case: CaseId,
    },
    /// An asset is in more than one shard.
    #[error("the asset `{0}` is in more than one shard")]
    DuplicateAsset(String),
    /// An asset differs from its entry in the manifest.
    #[error("`{0}` differs from the digest in its manifest")]
    ChangedAsset(Utf8PathBuf),
}
