//! Accepts a new run as the baseline: checks that it is complete and valid, and copies it to the other side.

use std::collections::BTreeMap;

use super::baseline_labels::{CaseLabels, LabelsError};
use super::baseline_review::{CaseReview, ReviewError};
use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{Accepted, CaseId, NameError, Outcome, Run, RunId, Side, escape_invisible};
use counterproof_store::write::{self, Durability, StagedFolder, WriteError};
use counterproof_store::{
    EVALUATION_FILE, FileLock, LABELS_FILE, LockError, RUN_FILE, ReadError, RunReader, lock_run_folder,
};
use counterproof_validation::{Code, PathError, validate_path};

use super::{absolute, rebase_path};

/// An error message quotes at most this many findings.
const MAX_QUOTED: usize = 3;

/// The options of an acceptance.
#[derive(Debug, Clone)]
pub struct Acceptance {
    /// The reason, recorded in `run.json`.
    pub reason: String,
    /// The person or system that accepts the run.
    pub by: Option<String>,
    /// The time, in ISO 8601.
    pub at: String,
    /// The id of the baseline, or of its group of repeats. `None` keeps the id of the run.
    pub run_id: Option<RunId>,
    /// Whether to add the run to the latest baseline as one more repeat of its group, instead of replacing it.
    pub append: bool,
    /// Whether to accept a run with cases without an answer.
    pub allow_failures: bool,
    /// Which cases the agent solved, to be stored with the baseline.
    pub labels: Option<CaseLabels>,
    /// The marks of a person, recorded in `run.json` next to the reason.
    pub review: Option<CaseReview>,
}

/// An accepted baseline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Baseline {
    /// The run folders: one, or one for each repeat.
    pub folders: Vec<Utf8PathBuf>,
    /// The number of cases of each.
    pub cases: usize,
    /// Unresolved evidence refs. They are claims of the agent and do not prevent acceptance.
    pub unresolved: usize,
}

/// A run that passed all checks.
struct Candidate {
    reader: RunReader,
    /// Prevents changes by a runner until the copy is complete.
    _lock: Option<FileLock>,
    unresolved: usize,
    /// The document of the copy.
    run: Run,
    target: Utf8PathBuf,
}

/// Copies a run of side `new` to `<runs>/baseline/`, with all repeats of its group. The run itself does not change.
///
/// Every copy is complete or absent, and earlier baselines do not change. If one copy of a group cannot be published, the others
/// of this call are withdrawn.
pub fn accept(folder: &Utf8Path, runs: &Utf8Path, acceptance: &Acceptance) -> Result<Baseline, AcceptError> {
    let parent = runs.join(Side::Baseline.as_str());
    let group = if acceptance.append { latest_group(runs)? } else { None };
    let mut candidates = Vec::new();
    for reader in repeats(RunReader::open(folder)?)? {
        let mut candidate = candidate(reader, &parent, acceptance)?;
        if let Some(group) = &group {
            candidate.append_to(group);
        }
        candidates.push(candidate);
    }
    // Before the first copy, so that invalid labels and reviews leave nothing behind.
    if let Some(labels) = &acceptance.labels {
        labels.check(candidates.iter().flat_map(|candidate| &candidate.run.selected_case_ids))?;
    }
    if let Some(review) = &acceptance.review {
        review.check(candidates.iter().flat_map(|candidate| &candidate.run.selected_case_ids))?;
    }
    let published: Vec<bool> = candidates.iter().map(is_published).collect::<Result<_, _>>()?;
    if published.iter().all(|published| *published) {
        return Err(AcceptError::Exists(candidates.swap_remove(0).target));
    }
    write::create_folder(&parent)?;
    // Completes a group of which an earlier, killed call published some copies.
    let unpublished: Vec<_> =
        candidates.iter().zip(published).filter(|(_, published)| !published).map(|(it, _)| it).collect();
    let copies = unpublished
        .into_iter()
        .map(|candidate| stage(candidate, acceptance.labels.as_ref()))
        .collect::<Result<Vec<_>, _>>()?;
    // All copies are complete before the first of them gets its name.
    publish(&copies)?;
    Ok(Baseline {
        cases: candidates[0].reader.run().selected_case_ids.len(),
        unresolved: candidates.iter().map(|candidate| candidate.unresolved).sum(),
        folders: candidates.into_iter().map(|candidate| candidate.target).collect(),
    })
}

/// Returns the group of the latest baseline; a run that was not repeated is a group of one. `None` without a baseline.
fn latest_group(runs: &Utf8Path) -> Result<Option<RunId>, AcceptError> {
    match RunReader::latest(runs, Side::Baseline) {
        Ok(latest) => Ok(Some(latest.run.run().group().clone())),
        Err(ReadError::NoRun { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Candidate {
    /// Makes the copy a run of this group.
    fn append_to(&mut self, group: &RunId) {
        // The group has no planned number of repeats any more.
        self.run.group_id = Some(group.clone());
        (self.run.repeat, self.run.repeats) = (None, None);
    }
}

/// Returns the run, or every repeat of its group in order.
fn repeats(run: RunReader) -> Result<Vec<RunReader>, AcceptError> {
    let (Some(group), Some(of)) = (run.run().group_id.clone(), run.run().repeats) else { return Ok(vec![run]) };
    let mut found: BTreeMap<u64, Vec<RunReader>> = BTreeMap::new();
    // A repeat that cannot be read is not among the siblings, and is reported as missing below.
    for reader in run.siblings()? {
        let document = reader.run();
        // The shards of a merged repeat may still be in the same folder.
        let is_repeat = document.group_id.as_ref() == Some(&group) && document.shard.is_none();
        if let Some(repeat) = document.repeat.filter(|_| is_repeat && document.version == run.run().version) {
            found.entry(repeat.get()).or_default().push(reader);
        }
    }
    let missing: Vec<_> = (1..=of.get()).filter(|number| !found.contains_key(number)).take(10).collect();
    let several = found.iter().find(|(_, readers)| readers.len() > 1);
    let problem = match several {
        _ if !missing.is_empty() => RepeatProblem::Missing { folder: run.parent_folder(), numbers: missing },
        Some((number, readers)) => RepeatProblem::Duplicate {
            first: readers[0].folder().to_owned(),
            second: readers[1].folder().to_owned(),
            number: *number,
        },
        None => return Ok(found.into_values().flatten().collect()),
    };
    Err(AcceptError::Repeats { group, of: of.get(), problem })
}

/// Checks whether a run can be the baseline, and builds the document of the copy.
fn candidate(reader: RunReader, parent: &Utf8Path, acceptance: &Acceptance) -> Result<Candidate, AcceptError> {
    let (folder, run) = (reader.folder().to_owned(), reader.run());
    if run.version == Side::Baseline {
        return Err(AcceptError::IsBaseline(folder));
    }
    if run.shard.is_some() {
        return Err(AcceptError::IsShard(folder));
    }
    if let Some(confirmation) = &run.confirmation {
        return Err(AcceptError::IsConfirmation { folder, of: confirmation.of.clone() });
    }
    // Before the checks: a runner could change what they have read.
    let lock = match lock_run_folder(&folder) {
        Ok(lock) => Some(lock),
        Err(error @ LockError::Busy(_)) => return Err(error.into()),
        // On a read-only disk there is no lock, and no runner can write either.
        Err(LockError::Io { .. }) => None,
    };
    let incomplete = |problem| AcceptError::Incomplete { folder: folder.clone(), problem };
    if run.selected_case_ids.is_empty() {
        return Err(incomplete(Incompleteness::NoCases));
    }
    if run.stats.is_none() || run.extra.get("interrupted").is_some_and(|value| value == true) {
        return Err(incomplete(Incompleteness::Stopped));
    }
    let missing: Vec<_> = run.selected_case_ids.iter().filter(|case| !reader.case_path(case).exists()).collect();
    if let Some(first) = missing.first() {
        return Err(incomplete(Incompleteness::NoArtifact {
            missing: missing.len(),
            cases: run.selected_case_ids.len(),
            first: (*first).clone(),
        }));
    }
    // After the checks for completeness, since a stopped run also violates the contract, by its missing artifacts.
    let unresolved = check_contract(&folder)?;
    let mut failed = 0;
    for case in &run.selected_case_ids {
        failed += usize::from(matches!(reader.read_case(case)?.outcome, Outcome::RunnerError(_)));
    }
    if failed > 0 && !acceptance.allow_failures {
        return Err(AcceptError::Failures { folder, failed, cases: run.selected_case_ids.len() });
    }
    let run_id = run_id(run, acceptance)?;
    let target = parent.join(run_id.as_str());
    let (from, to) = (absolute(&folder), absolute(&target));
    let run = Run {
        run_id,
        version: Side::Baseline,
        cases_path: rebase_path(&run.cases_path, &from, &to),
        out_dir: rebase_path("../..", &to, &to),
        group_id: run.group_id.as_ref().map(|group| acceptance.run_id.as_ref().unwrap_or(group).clone()),
        accepted: Some(Accepted {
            at: acceptance.at.clone(),
            reason: acceptance.reason.clone(),
            from_run_id: run.run_id.clone(),
            by: acceptance.by.clone(),
            review: acceptance.review.as_ref().map(|review| review.document().clone()),
            extra: counterproof_artifact::Extra::new(),
        }),
        ..run.clone()
    };
    Ok(Candidate { reader, _lock: lock, unresolved, run, target })
}

/// Rejects a run that violates the contract. Returns the number of unresolved evidence refs, which do not prevent
/// acceptance.
fn check_contract(folder: &Utf8Path) -> Result<usize, AcceptError> {
    let mut findings = validate_path(folder)?.findings;
    // The evaluation of an earlier comparison is not copied, and therefore not checked.
    findings.retain(|finding| finding.file.file_name() != Some(EVALUATION_FILE));
    let (unresolved, broken): (Vec<_>, Vec<_>) =
        findings.into_iter().partition(|finding| finding.code == Code::EvidenceUnresolved);
    if broken.is_empty() {
        return Ok(unresolved.len());
    }
    let first = broken.iter().take(MAX_QUOTED).map(|finding| {
        let name = finding.file.strip_prefix(folder).unwrap_or(&finding.file);
        format!("{name}: {} ({})", escape_invisible(&finding.message), finding.code)
    });
    let mut first = first.collect::<Vec<_>>().join("; ");
    if broken.len() > MAX_QUOTED {
        first.push_str("; …");
    }
    Err(AcceptError::Invalid { folder: folder.to_owned(), count: broken.len(), first })
}

/// Returns the id of the copy: the id of the run, or the chosen one with the number of the repeat.
fn run_id(run: &Run, acceptance: &Acceptance) -> Result<RunId, AcceptError> {
    let Some(chosen) = &acceptance.run_id else { return Ok(run.run_id.clone()) };
    let name = match run.repeat.filter(|_| run.group_id.is_some()) {
        Some(repeat) => format!("{chosen}-r{}", repeat.get()),
        None => chosen.to_string(),
    };
    name.parse().map_err(|error| AcceptError::Name { name, error })
}

/// Reports whether an earlier call published this copy. Any other folder of that name is an error.
fn is_published(candidate: &Candidate) -> Result<bool, AcceptError> {
    if !candidate.target.exists() {
        return Ok(false);
    }
    let made_of = RunReader::open(&candidate.target).ok().and_then(|there| there.run().accepted.clone());
    if made_of.is_some_and(|accepted| accepted.from_run_id == candidate.reader.run().run_id) {
        return Ok(true);
    }
    Err(AcceptError::Exists(candidate.target.clone()))
}

/// Builds the copy of a run next to its target, with the labels of its cases.
fn stage(candidate: &Candidate, labels: Option<&CaseLabels>) -> Result<StagedFolder, AcceptError> {
    let staged = StagedFolder::new(&candidate.target, "accept")?;
    super::baseline_copy::copy(&candidate.reader, staged.path())?;
    if let Some(labels) = labels.and_then(|labels| labels.document(&candidate.run.selected_case_ids)) {
        write::write_json(&staged.path().join(LABELS_FILE), &labels, Durability::Synced)?;
    }
    // Last, because a folder with a run document is read as a run.
    write::write_json(&staged.path().join(RUN_FILE), &candidate.run, Durability::Synced)?;
    Ok(staged)
}

/// Publishes all copies of a group. If one fails, withdraws those already published.
fn publish(copies: &[StagedFolder]) -> Result<(), AcceptError> {
    for index in 0..copies.len() {
        if let Err(error) = copies[index].place() {
            for published in &copies[..index] {
                // `error` is reported. A copy that cannot be withdrawn is completed by the next call.
                let _ = published.withdraw();
            }
            return Err(error.into());
        }
    }
    Ok(())
}

/// Why a run cannot be the baseline.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    /// A file could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The run folder could not be validated.
    #[error(transparent)]
    Path(#[from] PathError),
    /// Another process is writing to the run folder.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The labels do not fit the run.
    #[error(transparent)]
    Labels(#[from] LabelsError),
    /// The review does not fit the run.
    #[error(transparent)]
    Review(#[from] ReviewError),
    /// The id of the baseline is invalid.
    #[error("invalid baseline id `{name}`: {error}")]
    Name {
        /// The invalid id.
        name: String,
        /// Why it is invalid.
        error: NameError,
    },
    /// The run is a baseline run.
    #[error("`{0}` is a run of side `baseline` already")]
    IsBaseline(Utf8PathBuf),
    /// The run is a shard.
    #[error("`{0}` is a shard, and only a complete run can be the baseline")]
    IsShard(Utf8PathBuf),
    /// The run is a confirmation run.
    #[error("`{folder}` is a confirmation run of `{of}`, and only a complete run can be the baseline")]
    IsConfirmation {
        /// The run folder.
        folder: Utf8PathBuf,
        /// The confirmed run.
        of: RunId,
    },
    /// The run is not complete.
    #[error("`{folder}` is not complete: {problem}")]
    Incomplete {
        /// The run folder.
        folder: Utf8PathBuf,
        /// What is missing.
        problem: Incompleteness,
    },
    /// The run violates the contract.
    #[error("`{folder}` violates the contract in {count} places: {first}")]
    Invalid {
        /// The run folder.
        folder: Utf8PathBuf,
        /// The number of findings.
        count: usize,
        /// The first findings.
        first: String,
    },
    /// Cases of the run have no answer.
    #[error("`{folder}` has no answer for {failed} of {cases} cases, and regressions in them could never be detected")]
    Failures {
        /// The run folder.
        folder: Utf8PathBuf,
        /// The number of cases without an answer.
        failed: usize,
        /// The number of all cases.
        cases: usize,
    },
    /// Repeats of the run's group are missing or duplicate.
    #[error("the group `{group}` must have each of its {of} repeats once: {problem}")]
    Repeats {
        /// The group.
        group: RunId,
        /// The number of repeats.
        of: u64,
        /// Which repeats are missing or duplicate.
        problem: RepeatProblem,
    },
    /// A baseline with this id exists.
    #[error("the baseline `{0}` already exists")]
    Exists(Utf8PathBuf),
}

/// What a run lacks.
#[derive(Debug, thiserror::Error)]
pub enum Incompleteness {
    /// No case is selected.
    #[error("it has no cases")]
    NoCases,
    /// The run was interrupted or killed.
    #[error("it was stopped before its end")]
    Stopped,
    /// Cases have no artifact.
    #[error("{missing} of {cases} cases have no artifact, such as `{first}`")]
    NoArtifact {
        /// The number of cases without an artifact.
        missing: usize,
        /// The number of all cases.
        cases: usize,
        /// The first case without an artifact.
        first: CaseId,
    },
}

/// Why the repeats of a group are not complete.
#[derive(Debug, thiserror::Error)]
pub enum RepeatProblem {
    /// Two runs have the same repeat number.
    #[error("`{first}` and `{second}` are both repeat {number}")]
    Duplicate {
        /// One of the run folders.
        first: Utf8PathBuf,
        /// The other run folder.
        second: Utf8PathBuf,
        /// The number of both.
        number: u64,
    },
    /// Repeats are missing.
    #[error("missing in `{folder}`: {}", comma_separated(.numbers))]
    Missing {
        /// The folder that contains the runs of the group.
        folder: Utf8PathBuf,
        /// The numbers of the first missing repeats.
        numbers: Vec<u64>,
    },
}

fn comma_separated(numbers: &[u64]) -> String {
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}
