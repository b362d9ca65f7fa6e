//! Merges shards into one run. They must form one complete run: same cases, same settings, each shard and each case once.

use std::collections::{BTreeMap, HashSet};
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{Case, CaseId, Extra, Outcome, Run, RunId, ShardOf, Side, Stats};
use counterproof_store::write::{self, Durability, StagedFolder, WriteError};
use counterproof_store::{ASSETS_FOLDER, CreateError, ReadError, RunReader, RunWriter};
use jiff::{SpanRound, Timestamp, Unit};
use serde_json::json;

use super::case_counts::was_skipped;
use super::changes::differing_settings;
use super::merge_error::{MergeError, ShardMismatch};
use super::relative_path::{absolute, rebase_path};
use super::salvage;
use crate::digest;

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
}

/// A run folder of one shard.
struct ShardFolder {
    reader: RunReader,
    shard: ShardOf,
}

/// Merges shards into a new run folder, which must not exist. The new folder is complete or absent.
pub fn merge(shards: &[Utf8PathBuf], out: &Utf8Path) -> Result<Merged, MergeError> {
    let shard_folders = open(shards)?;
    let first = &shard_folders[0];
    let run_id = run_id(out, first.reader.run())?;
    if out.exists() {
        return Err(CreateError::Exists(out.to_owned()).into());
    }
    check_settings(&shard_folders)?;
    let order = order(&shard_folders)?;

    let parent = out.parent().filter(|parent| !parent.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
    write::create_folder(parent)?;
    let side = first.reader.run().version;
    let (mut staged, writer) =
        StagedFolder::create_with(out, "merge", |path| RunWriter::create_at(path.to_owned(), side))?;
    let result = fill(&writer, &shard_folders, &order, run_id, out);
    // Releases the lock before the folder is renamed.
    drop(writer);
    let (cases, failed) = result?;
    staged.publish()?;
    Ok(Merged { folder: out.to_owned(), cases, failed, shards: shard_folders.len() })
}

/// Returns the run id, which is the name of the new folder.
fn run_id(out: &Utf8Path, shard: &Run) -> Result<RunId, MergeError> {
    let name = out.file_name().unwrap_or_default();
    let id = name.parse().map_err(|source| ShardMismatch::Name { folder: out.to_owned(), source })?;
    let above: Option<Side> = out.parent().and_then(Utf8Path::file_name).and_then(|name| name.parse().ok());
    match above {
        Some(side) if side != shard.version => {
            Err(ShardMismatch::Side { folder: out.to_owned(), side, of_shards: shard.version }.into())
        }
        _ => Ok(id),
    }
}

fn open(shards: &[Utf8PathBuf]) -> Result<Vec<ShardFolder>, MergeError> {
    let mut shard_folders: BTreeMap<u64, ShardFolder> = BTreeMap::new();
    for folder in shards {
        let reader = RunReader::open(folder)?;
        let Some(shard) = reader.run().shard.clone() else {
            return Err(ShardMismatch::NotAShard(folder.clone()).into());
        };
        let index = shard.index.get();
        if let Some(other) = shard_folders.insert(index, ShardFolder { reader, shard }) {
            let first = other.reader.folder().to_owned();
            return Err(ShardMismatch::Twice { first, second: folder.clone(), index }.into());
        }
    }
    let Some(count) = shard_folders.values().next().map(|shard_folder| shard_folder.shard.count.get()) else {
        return Err(ShardMismatch::Empty.into());
    };
    let missing: Vec<_> = (1..=count).filter(|index| !shard_folders.contains_key(index)).take(20).collect();
    if !missing.is_empty() && shard_folders.values().all(|shard_folder| shard_folder.shard.count.get() == count) {
        let missing: Vec<_> = missing.iter().map(|index| format!("{index}/{count}")).collect();
        return Err(ShardMismatch::Missing(missing).into());
    }
    Ok(shard_folders.into_values().collect())
}

/// Rejects shards of different runs: other cases, settings, sides, numbers of shards or commits.
fn check_settings(shard_folders: &[ShardFolder]) -> Result<(), MergeError> {
    let first = &shard_folders[0];
    for shard_folder in &shard_folders[1..] {
        let changes = differing_settings(first.reader.run(), shard_folder.reader.run());
        if !changes.is_empty() {
            let (first, second) = (first.reader.folder().to_owned(), shard_folder.reader.folder().to_owned());
            return Err(ShardMismatch::DifferentRuns { first, second, changes }.into());
        }
    }
    Ok(())
}

/// Returns every case in the order of the whole run, with the index of its shard.
fn order(shard_folders: &[ShardFolder]) -> Result<Vec<(CaseId, usize)>, MergeError> {
    let mut positions: BTreeMap<u64, (CaseId, usize)> = BTreeMap::new();
    let mut seen = HashSet::new();
    for (number, shard_folder) in shard_folders.iter().enumerate() {
        let (run, shard) = (shard_folder.reader.run(), &shard_folder.shard);
        if run.selected_case_ids.len() != shard.positions.len() {
            return Err(ShardMismatch::Positions(shard_folder.reader.folder().to_owned()).into());
        }
        for (case, position) in run.selected_case_ids.iter().zip(&shard.positions) {
            if !seen.insert(case.collision_key()) {
                return Err(ShardMismatch::DuplicateCase(case.clone()).into());
            }
            positions.insert(position.get(), (case.clone(), number));
        }
    }
    let order: Vec<_> = positions.into_values().collect();
    let total = shard_folders[0].shard.cases_total.get();
    if order.len() as u64 != total {
        return Err(ShardMismatch::CaseCount { found: order.len(), expected: total }.into());
    }
    let digest_of = |(case, number): &(CaseId, usize)| {
        shard_folders[*number].reader.run().case_digests.as_ref().and_then(|digests| digests.get(case).copied())
    };
    let digests: Option<Vec<_>> = order.iter().map(digest_of).collect();
    let whole = digests.map(|digests| digest::of_cases(order.iter().map(|(case, _)| case).zip(&digests)));
    if whole.is_none() || whole != shard_folders[0].reader.run().cases_digest {
        return Err(ShardMismatch::OtherCases.into());
    }
    Ok(order)
}

/// Writes all files of the new folder, `run.json` last. Returns the number of cases and of failed cases.
fn fill(
    writer: &RunWriter,
    shard_folders: &[ShardFolder],
    order: &[(CaseId, usize)],
    run_id: RunId,
    out: &Utf8Path,
) -> Result<(usize, usize), MergeError> {
    let (mut failed, mut retried, mut attempts, mut not_run) = (0, 0, 0, 0);
    for (case, number) in order {
        let reader = &shard_folders[*number].reader;
        let artifact: Case = reader.read_case(case).map_err(|error| {
            if error.is_missing() {
                let folder = reader.folder().to_owned();
                MergeError::Shards(ShardMismatch::Incomplete { folder, case: case.clone() })
            } else {
                MergeError::Read(error)
            }
        })?;
        let tries = artifact.attempts.as_ref().map_or(0, Vec::len);
        failed += usize::from(matches!(artifact.outcome, Outcome::RunnerError(_)));
        not_run += usize::from(was_skipped(&artifact));
        retried += usize::from(tries > 1);
        attempts += tries;
        let name = format!("{case}.json");
        write::copy(&reader.case_path(case), &writer.folder().join(name), Durability::Synced)?;
    }
    for shard_folder in shard_folders {
        copy_assets(writer, shard_folder)?;
    }
    let mut document = document(shard_folders, order, run_id, out);
    let mut extra: Extra =
        [("cases_retried".to_owned(), retried.into()), ("attempts_total".to_owned(), attempts.into())]
            .into_iter()
            .collect();
    if not_run > 0 {
        extra.insert("cases_not_run".to_owned(), not_run.into());
    }
    document.stats = Some(Stats {
        cases_total: Some(order.len().into()),
        cases_completed: Some((order.len() - failed).into()),
        cases_failed: Some(failed.into()),
        duration_ms: duration(shard_folders).map(Into::into),
        extra,
    });
    let newest = shard_folders
        .iter()
        .map(|shard_folder| shard_folder.reader.run().generated_at.as_str())
        .max()
        .unwrap_or_default();
    writer.write_manifest(newest)?;
    writer.write_run(&document)?;
    Ok((order.len(), failed))
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
        let mut source = std::fs::File::open(&from).map_err(read)?;
        let mut copy = writer.asset(&asset.name, asset.kind, asset.case.as_ref())?;
        io::copy(&mut source, &mut copy).map_err(|source| WriteError { path: to.clone(), source })?;
        let written = copy.finish()?;
        if asset.sha256.is_some_and(|listed| Some(listed) != written.sha256) {
            return Err(ShardMismatch::ChangedAsset(from).into());
        }
    }
    Ok(())
}

/// Returns the document of the whole run, without statistics.
fn document(shard_folders: &[ShardFolder], order: &[(CaseId, usize)], run_id: RunId, out: &Utf8Path) -> Run {
    let first = shard_folders[0].reader.run();
    let oldest = shard_folders
        .iter()
        .map(|shard_folder| shard_folder.reader.run())
        .min_by(|a, b| a.generated_at.cmp(&b.generated_at));
    let (from, to) = (absolute(shard_folders[0].reader.folder()), absolute(out));
    let digests = shard_folders
        .iter()
        .filter_map(|shard_folder| shard_folder.reader.run().case_digests.clone())
        .flatten()
        .collect();
    let mut extra = first.extra.clone();
    let merged_from: Vec<_> = shard_folders
        .iter()
        .map(|shard_folder| {
            let Run { run_id, generated_at, stats, extra, .. } = shard_folder.reader.run();
            let mut shard = json!({"run_id": run_id, "generated_at": generated_at});
            if let Some(duration) = stats.as_ref().and_then(|stats| stats.duration_ms.as_ref()) {
                shard["duration_ms"] = json!(duration);
            }
            if let Some(resumes) = extra.get("resumes") {
                shard["resumes"] = resumes.clone();
            }
            shard
        })
        .collect();
    extra.remove("resumes");
    extra.insert("merged_from".to_owned(), merged_from.into());
    Run {
        run_id,
        generated_at: oldest.unwrap_or(first).generated_at.clone(),
        cases_path: rebase_path(&first.cases_path, &from, &to),
        out_dir: rebase_path("../..", &to, &to),
        selected_case_ids: order.iter().map(|(case, _)| case.clone()).collect(),
        case_digests: Some(digests),
        shard: None,
        stats: None,
        extra,
        ..first.clone()
    }
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
    let start = spans.iter().map(|(start, _)| *start).min()?;
    let end = spans.iter().map(|(_, end)| *end).max()?;
    let span = end.since(start).ok()?.round(SpanRound::new().largest(Unit::Millisecond)).ok()?;
    u64::try_from(span.get_milliseconds()).ok()
}
