//! Shard runs, joined into the run that they make together. Nothing is asked, and nothing is judged but whether they belong
//! together: same cases, same settings, every shard once, every case once.

use std::collections::{BTreeMap, HashSet};
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{Case, CaseId, Extra, Outcome, Run, RunId, ShardOf, Side, Stats};
use counterproof_store::write::{self, Durability, StagedFolder, WriteError};
use counterproof_store::{ASSETS_FOLDER, CreateError, ReadError, RunReader, RunWriter};
use jiff::{SpanRound, Timestamp, Unit};
use serde_json::json;

use super::changes::differing_settings;
use super::relative_path::{absolute, rebase_path};
use super::salvage;
use crate::digest;

/// Why shards could not be joined.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// A shard, or a file of it, could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The shards do not make a whole run.
    #[error("{0}")]
    Refused(String),
    /// The new run folder could not be made.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// What came of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// The run folder.
    pub folder: Utf8PathBuf,
    /// Cases.
    pub cases: usize,
    /// Those of them that failed.
    pub failed: usize,
    /// Shards.
    pub shards: usize,
}

/// A shard run and its place.
struct Piece {
    reader: RunReader,
    shard: ShardOf,
}

/// Joins shard runs into a run folder, which must not be there yet: it is there whole, or not at all.
pub fn merge(shards: &[Utf8PathBuf], out: &Utf8Path) -> Result<Merged, MergeError> {
    let pieces = open(shards)?;
    let first = &pieces[0];
    let run_id = run_id(out, first.reader.run())?;
    if out.exists() {
        return Err(CreateError::Exists(out.to_owned()).into());
    }
    belong_together(&pieces)?;
    let order = order(&pieces)?;

    let parent = out.parent().filter(|parent| !parent.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
    write::create_folder(parent)?;
    let side = first.reader.run().version;
    let (mut staged, writer) =
        StagedFolder::create_with(out, "merge", |path| RunWriter::create_at(path.to_owned(), side))?;
    let result = fill(&writer, &pieces, &order, run_id, out);
    // Releases the lock before the folder is renamed.
    drop(writer);
    let (cases, failed) = result?;
    staged.publish()?;
    Ok(Merged { folder: out.to_owned(), cases, failed, shards: pieces.len() })
}

/// The folder's name is the run's.
fn run_id(out: &Utf8Path, shard: &Run) -> Result<RunId, MergeError> {
    let name = out.file_name().unwrap_or_default();
    let id =
        name.parse().map_err(|error| MergeError::Refused(format!("`{out}` cannot be named after a run: {error}")))?;
    let above: Option<Side> = out.parent().and_then(Utf8Path::file_name).and_then(|name| name.parse().ok());
    match above {
        Some(side) if side != shard.version => Err(MergeError::Refused(format!(
            "`{out}` is in the folder of side `{side}`, and the shards are of side `{}`",
            shard.version
        ))),
        _ => Ok(id),
    }
}

fn open(shards: &[Utf8PathBuf]) -> Result<Vec<Piece>, MergeError> {
    let mut pieces: BTreeMap<u64, Piece> = BTreeMap::new();
    for folder in shards {
        let reader = RunReader::open(folder)?;
        let Some(shard) = reader.run().shard.clone() else {
            return Err(MergeError::Refused(format!("`{folder}` is no shard: its run.json has no `shard`")));
        };
        let index = shard.index.get();
        if let Some(other) = pieces.insert(index, Piece { reader, shard }) {
            return Err(MergeError::Refused(format!(
                "`{}` and `{folder}` are both shard {index}",
                other.reader.folder()
            )));
        }
    }
    let Some(count) = pieces.values().next().map(|piece| piece.shard.count.get()) else {
        return Err(MergeError::Refused("there are no shards".to_owned()));
    };
    let missing: Vec<_> = (1..=count).filter(|index| !pieces.contains_key(index)).take(20).collect();
    if !missing.is_empty() && pieces.values().all(|piece| piece.shard.count.get() == count) {
        let missing: Vec<_> = missing.iter().map(|index| format!("{index}/{count}")).collect();
        return Err(MergeError::Refused(format!("shards are missing: {}", missing.join(", "))));
    }
    Ok(pieces.into_values().collect())
}

/// Refuses shards of different runs: other cases, settings, sides, numbers of shards or commits.
fn belong_together(pieces: &[Piece]) -> Result<(), MergeError> {
    let first = &pieces[0];
    for piece in &pieces[1..] {
        let differ = differing_settings(first.reader.run(), piece.reader.run());
        if !differ.is_empty() {
            return Err(MergeError::Refused(format!(
                "`{}` and `{}` are not shards of one run: {differ}",
                first.reader.folder(),
                piece.reader.folder()
            )));
        }
    }
    Ok(())
}

/// Every case, by its place in the whole run, with the piece that has it.
fn order(pieces: &[Piece]) -> Result<Vec<(CaseId, usize)>, MergeError> {
    let mut places: BTreeMap<u64, (CaseId, usize)> = BTreeMap::new();
    let mut seen = HashSet::new();
    for (number, piece) in pieces.iter().enumerate() {
        let (run, shard) = (piece.reader.run(), &piece.shard);
        if run.selected_case_ids.len() != shard.positions.len() {
            return Err(MergeError::Refused(format!(
                "`{}` does not say where each of its cases stands",
                piece.reader.folder()
            )));
        }
        for (case, position) in run.selected_case_ids.iter().zip(&shard.positions) {
            if !seen.insert(case.collision_key()) {
                return Err(MergeError::Refused(format!("the case `{case}` is in more than one shard")));
            }
            places.insert(position.get(), (case.clone(), number));
        }
    }
    let order: Vec<_> = places.into_values().collect();
    let total = pieces[0].shard.cases_total.get();
    if order.len() as u64 != total {
        return Err(MergeError::Refused(format!(
            "the shards have {} cases together, and the run {total}",
            order.len()
        )));
    }
    let digest_of = |(case, number): &(CaseId, usize)| {
        pieces[*number].reader.run().case_digests.as_ref().and_then(|digests| digests.get(case).copied())
    };
    let digests: Option<Vec<_>> = order.iter().map(digest_of).collect();
    let whole = digests.map(|digests| digest::of_cases(order.iter().map(|(case, _)| case).zip(&digests)));
    if whole.is_none() || whole != pieces[0].reader.run().cases_digest {
        return Err(MergeError::Refused("the shards do not have the cases that the whole run has".to_owned()));
    }
    Ok(order)
}

/// Writes everything into the new folder, `run.json` last; gives the number of cases and of those that failed.
fn fill(
    writer: &RunWriter,
    pieces: &[Piece],
    order: &[(CaseId, usize)],
    run_id: RunId,
    out: &Utf8Path,
) -> Result<(usize, usize), MergeError> {
    let (mut failed, mut retried, mut attempts, mut not_run) = (0, 0, 0, 0);
    for (case, number) in order {
        let reader = &pieces[*number].reader;
        let artifact: Case = reader.read_case(case).map_err(|error| {
            if error.is_missing() {
                let folder = reader.folder();
                MergeError::Refused(format!("`{folder}` is not complete: the case `{case}` has no artifact"))
            } else {
                error.into()
            }
        })?;
        let tries = artifact.attempts.as_ref().map_or(0, Vec::len);
        failed += usize::from(matches!(artifact.outcome, Outcome::RunnerError(_)));
        not_run += usize::from(super::case_counts::was_skipped(&artifact));
        retried += usize::from(tries > 1);
        attempts += tries;
        let name = format!("{case}.json");
        write::copy(&reader.case_path(case), &writer.folder().join(name), Durability::Synced)?;
    }
    for piece in pieces {
        copy_assets(writer, piece)?;
    }
    let mut document = document(pieces, order, run_id, out);
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
        duration_ms: duration(pieces).map(Into::into),
        extra,
    });
    let newest = pieces.iter().map(|piece| piece.reader.run().generated_at.as_str()).max().unwrap_or_default();
    writer.write_manifest(newest)?;
    writer.write_run(&document)?;
    Ok((order.len(), failed))
}

fn copy_assets(writer: &RunWriter, piece: &Piece) -> Result<(), MergeError> {
    let reader = &piece.reader;
    let cases = reader.run().selected_case_ids.iter().cloned().collect();
    for asset in salvage::listed(reader, &cases)? {
        let from = reader.folder().join(ASSETS_FOLDER).join(&asset.name);
        let to = writer.folder().join(ASSETS_FOLDER).join(&asset.name);
        if to.exists() {
            return Err(MergeError::Refused(format!("the asset `{}` is in more than one shard", asset.name)));
        }
        let read = |source| ReadError::Io { path: from.clone(), source };
        let mut source = std::fs::File::open(&from).map_err(read)?;
        let mut copy = writer.asset(&asset.name, asset.kind, asset.case.as_ref())?;
        io::copy(&mut source, &mut copy).map_err(|source| WriteError { path: to.clone(), source })?;
        let written = copy.finish()?;
        if asset.sha256.is_some_and(|listed| Some(listed) != written.sha256) {
            return Err(MergeError::Refused(format!("`{from}` is not the file that its manifest lists")));
        }
    }
    Ok(())
}

/// The document of the whole run, without its stats.
fn document(pieces: &[Piece], order: &[(CaseId, usize)], run_id: RunId, out: &Utf8Path) -> Run {
    let first = pieces[0].reader.run();
    let oldest = pieces.iter().map(|piece| piece.reader.run()).min_by(|a, b| a.generated_at.cmp(&b.generated_at));
    let (from, to) = (absolute(pieces[0].reader.folder()), absolute(out));
    let digests = pieces.iter().filter_map(|piece| piece.reader.run().case_digests.clone()).flatten().collect();
    let mut extra = first.extra.clone();
    let merged_from: Vec<_> = pieces
        .iter()
        .map(|piece| {
            let Run { run_id, generated_at, stats, extra, .. } = piece.reader.run();
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

/// From the first shard's start to the last shard's end, in milliseconds.
fn duration(pieces: &[Piece]) -> Option<u64> {
    let mut spans = Vec::new();
    for piece in pieces {
        let run = piece.reader.run();
        let start: Timestamp = run.generated_at.parse().ok()?;
        let took = run.stats.as_ref()?.duration_ms.as_ref()?.as_f64();
        spans.push((start, start.checked_add(std::time::Duration::try_from_secs_f64(took / 1000.0).ok()?).ok()?));
    }
    let start = spans.iter().map(|(start, _)| *start).min()?;
    let end = spans.iter().map(|(_, end)| *end).max()?;
    let span = end.since(start).ok()?.round(SpanRound::new().largest(Unit::Millisecond)).ok()?;
    u64::try_from(span.get_milliseconds()).ok()
}
