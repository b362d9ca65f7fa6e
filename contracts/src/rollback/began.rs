//! The start of an execution as a rollback needs it, and the rollback by its strategy.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use camino::Utf8Path;
use serde::{Deserialize, Serialize};

use super::snapshot::{self, SnapshotError, SnapshotLimits, SnapshotStart};
use super::{RollbackEnd, RollbackPlan, RollbackRefusal, custom};
use crate::git::{self, GitError, GitStart, Protected};
use crate::process::{Cancellation, DEFAULT_GRACE, DEFAULT_TIMEOUT, EvidenceError, EvidenceFolder, ProcessError};

/// What the start of an execution records for a rollback, one variant for each strategy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "strategy", rename_all = "snake_case")]
pub enum Began {
    /// The repository was at this commit.
    GitReset(GitStart),
    /// The declared paths were copied.
    RestoreSnapshot(SnapshotStart),
    /// The command of the contract undoes the work.
    Custom,
    /// Nothing was recorded, because the execution is not rolled back.
    Unavailable {
        /// Why it could not be.
        reason: String,
    },
}

/// A rollback that could not be prepared or executed.
#[derive(Debug, thiserror::Error)]
pub enum RollbackError {
    /// The contract has the strategy `custom`, and no command.
    #[error("the rollback strategy is `custom`, but `rollback.custom` has no command")]
    NoCommand,
    /// The snapshot could not be taken or restored.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// A git command failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The command could not be run.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The record of the command could not be stored.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
}

impl RollbackError {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            RollbackError::NoCommand => "no_rollback_command",
            RollbackError::Git(_) => "storage_error",
            RollbackError::Snapshot(error) => error.code(),
            RollbackError::Process(error) => error.code(),
            RollbackError::Evidence(error) => error.code(),
        }
    }
}

/// Where and how a rollback is executed.
#[derive(Debug, Clone)]
pub struct RollbackSettings<'a> {
    /// The command of the contract, for the strategy `custom`.
    pub command: Option<&'a str>,
    /// The working directory.
    pub folder: &'a Utf8Path,
    /// Paths that a reset of a repository leaves as they are.
    pub protected: Protected,
    /// The name under which a reset of a repository saves what it discards.
    pub name: &'a str,
    /// Variables to set or to remove for the command.
    pub environment: BTreeMap<OsString, Option<OsString>>,
    /// The folder for the record of the command.
    pub evidence: EvidenceFolder<'a>,
    /// The name of the record, which does not exist yet.
    pub evidence_name: &'a str,
    /// The time limit of the command.
    pub timeout: Duration,
    /// How long the command may run after its time limit.
    pub grace: Duration,
    /// The limits of the copy that is made before a snapshot is restored.
    pub limits: SnapshotLimits,
    /// See [`ShellCommand::supervisor`](crate::process::ShellCommand::supervisor).
    pub supervisor: Option<PathBuf>,
}

impl<'a> RollbackSettings<'a> {
    /// Creates settings with this environment and the default limits. The record is named `rollback`.
    pub fn new(folder: &'a Utf8Path, evidence: EvidenceFolder<'a>) -> Self {
        Self {
            command: None,
            folder,
            protected: Protected::default(),
            name: "contract",
            environment: BTreeMap::new(),
            evidence,
            evidence_name: "rollback",
            timeout: DEFAULT_TIMEOUT,
            grace: DEFAULT_GRACE,
            limits: SnapshotLimits::default(),
            supervisor: None,
        }
    }
}

impl Began {
    /// Copies the declared paths of a working directory into a new folder.
    pub fn snapshot(
        root: &Utf8Path,
        declared: &[String],
        folder: &Utf8Path,
        limits: SnapshotLimits,
    ) -> Result<Self, RollbackError> {
        Ok(Began::RestoreSnapshot(snapshot::take(root, declared, folder, limits)?))
    }

    /// Checks that there is a command.
    pub fn custom(command: Option<&str>) -> Result<Self, RollbackError> {
        custom::command(command).map(|_| Began::Custom)
    }

    /// Returns what a rollback would do. Changes nothing.
    pub fn plan(&self, settings: &RollbackSettings<'_>) -> Result<RollbackPlan, RollbackError> {
        Ok(match self {
            Began::RestoreSnapshot(start) => match snapshot::plan(start, settings.limits)? {
                Ok(planned) => planned.into(),
                Err(refusal) => RollbackPlan::Refused(refusal.into()),
            },
            Began::GitReset(start) => match git::plan(start, settings.folder, &settings.protected)? {
                Ok(plan) if plan.discarded.is_empty() => RollbackPlan::Steps(Vec::new()),
                Ok(plan) => {
                    let (commit, discarded) = (&start.commit, plan.discarded.summary());
                    RollbackPlan::Steps(vec![format!("reset to {commit}, and discard {discarded}")])
                }
                Err(refusal) => RollbackPlan::Refused(refusal.into()),
            },
            Began::Unavailable { reason } => RollbackPlan::Refused(RollbackRefusal::unavailable(reason)),
            Began::Custom => RollbackPlan::Steps(vec![format!("run `{}`", custom::command(settings.command)?)]),
        })
    }

    /// Rolls back. After an interruption, a second call ends in the same state, as far as the strategy can ensure it: the command
    /// of a custom rollback runs again.
    pub fn roll_back(
        &self,
        settings: &RollbackSettings<'_>,
        cancellation: &Cancellation,
    ) -> Result<RollbackEnd, RollbackError> {
        match self {
            // Not cancelled on the way: a part of a tree helps no one, and the rest takes no longer than a copy.
            Began::RestoreSnapshot(start) => Ok(match snapshot::restore(start, settings.limits)? {
                Ok(restored) => restored.into(),
                Err(refusal) => RollbackEnd::Refused(refusal.into()),
            }),
            Began::GitReset(start) => {
                Ok(match git::reset(start, settings.folder, &settings.protected, settings.name)? {
                    Ok(reset) => RollbackEnd::from_reset(&reset, &start.root),
                    Err(refusal) => RollbackEnd::Refused(refusal.into()),
                })
            }
            Began::Unavailable { reason } => Ok(RollbackEnd::Refused(RollbackRefusal::unavailable(reason))),
            Began::Custom => custom::roll_back(settings, cancellation),
        }
    }
}
