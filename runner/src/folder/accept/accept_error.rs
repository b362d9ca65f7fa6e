//! Errors of accepting a run as the baseline.

use camino::Utf8PathBuf;
use counterproof_artifact::{CaseId, NameError, RunId};
use counterproof_store::write::WriteError;
use counterproof_store::{LockError, ReadError};
use counterproof_validation::PathError;

use super::labels::LabelsError;

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
