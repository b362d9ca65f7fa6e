//! The start of an execution as a rollback needs it, and the rollback by its strategy.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use camino::Utf8Path;
use serde::{Deserialize, Serialize};

use super::snapshot::{self, Restored, SnapshotError, SnapshotLimits, SnapshotRefusal, SnapshotStart};
use crate::contract::Contract;
use crate::git::{self, GitError, GitOptions, GitStart, Protected, Reset};
use crate::process::{
    Cancellation, DEFAULT_GRACE, DEFAULT_TIMEOUT, EvidenceBudget, EvidenceFiles, EvidenceFolder, ProcessError,
    ShellCommand, run,
};
use crate::resources::ResourceRequest;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "strategy", rename_all = "snake_case")]
pub enum RollbackStart {
    GitReset(GitStart),
    RestoreSnapshot(SnapshotStart),
    Custom,
    /// Nothing was recorded, because the execution is not rolled back.
    Unavailable {
        reason: String,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum RollbackError {
    #[error("the rollback strategy is `custom`, but `rollback.custom` has no command")]
    NoCommand,
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Process(#[from] ProcessError),
}

impl RollbackError {
    pub const fn code(&self) -> &'static str {
        match self {
            RollbackError::NoCommand => "no_rollback_command",
            RollbackError::Git(_) => "storage_error",
            RollbackError::Snapshot(error) => error.code(),
            RollbackError::Process(error) => error.code(),
        }
    }
}

#[derive(Debug, Clone)]
pub struct RollbackSettings<'a> {
    /// The command of the contract, for the strategy `custom`.
    pub command: Option<&'a str>,
    pub folder: &'a Utf8Path,
    pub protected: Protected,
    /// The name under which a reset of a repository saves what it discards.
    pub name: &'a str,
    pub environment: BTreeMap<OsString, Option<OsString>>,
    pub evidence: EvidenceFolder<'a>,
    /// The name of the record, which does not exist yet.
    pub evidence_name: &'a str,
    pub timeout: Duration,
    /// How long the command may run after its time limit.
    pub grace: Duration,
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

    fn git(&self) -> GitOptions {
        GitOptions { supervisor: self.supervisor.clone(), timeout: self.timeout }
    }
}

impl RollbackStart {
    pub fn snapshot(
        root: &Utf8Path,
        declared: &[String],
        folder: &Utf8Path,
        limits: SnapshotLimits,
    ) -> Result<Self, RollbackError> {
        Ok(RollbackStart::RestoreSnapshot(snapshot::take(root, declared, folder, limits)?))
    }

    pub fn custom(command: Option<&str>) -> Result<Self, RollbackError> {
        custom_command(command).map(|_| RollbackStart::Custom)
    }

    /// Returns what a rollback would do. Changes nothing.
    pub fn plan(&self, settings: &RollbackSettings<'_>) -> Result<RollbackPlan, RollbackError> {
        Ok(match self {
            RollbackStart::RestoreSnapshot(start) => match snapshot::plan(start, settings.limits)? {
                Ok(planned) => planned.into(),
                Err(refusal) => RollbackPlan::Refused(refusal.into()),
            },
            RollbackStart::GitReset(start) => match git::plan(start, &settings.protected, &settings.git())? {
                // No steps, so that a person is not asked about nothing.
                Ok(plan) if plan.discarded.is_empty() => RollbackPlan::Steps(Vec::new()),
                Ok(plan) => {
                    let (commit, discarded) = (&start.commit, plan.discarded.summary());
                    RollbackPlan::Steps(vec![format!("reset to {commit}, and discard {discarded}")])
                }
                Err(refusal) => RollbackPlan::Refused(refusal.into()),
            },
            RollbackStart::Unavailable { reason } => RollbackPlan::Refused(RollbackRefusal::unavailable(reason)),
            RollbackStart::Custom => RollbackPlan::Steps(vec![format!("run `{}`", custom_command(settings.command)?)]),
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
            RollbackStart::RestoreSnapshot(start) => Ok(match snapshot::restore(start, settings.limits)? {
                Ok(restored) => restored.into(),
                Err(refusal) => RollbackEnd::Refused(refusal.into()),
            }),
            RollbackStart::GitReset(start) => {
                Ok(match git::reset(start, &settings.protected, settings.name, &settings.git())? {
                    Ok(reset) => RollbackEnd::from_reset(&reset, start.root()),
                    Err(refusal) => RollbackEnd::Refused(refusal.into()),
                })
            }
            RollbackStart::Unavailable { reason } => Ok(RollbackEnd::Refused(RollbackRefusal::unavailable(reason))),
            RollbackStart::Custom => roll_back(settings, cancellation),
        }
    }
}

fn custom_command(command: Option<&str>) -> Result<&str, RollbackError> {
    command.filter(|command| !command.trim().is_empty()).ok_or(RollbackError::NoCommand)
}

/// Runs the command. Only exit code 0 means that the work is undone.
pub(super) fn roll_back(
    settings: &RollbackSettings<'_>,
    cancellation: &Cancellation,
) -> Result<RollbackEnd, RollbackError> {
    let line = custom_command(settings.command)?;
    let command = ShellCommand {
        environment: settings.environment.clone(),
        timeout: settings.timeout,
        grace: settings.grace,
        supervisor: settings.supervisor.clone(),
        ..ShellCommand::new(line, settings.folder)
    };
    let finished = run(&command, cancellation)?;
    // Why it was stopped says more than the signal that stopped it.
    let failure = match (finished.stopped, finished.ending) {
        (Some(reason), _) => Some(reason.to_string()),
        (None, ending) if !ending.is_success() => Some(format!("the command ended with {ending}")),
        _ => None,
    };
    // Stored for a failure too: the output of the command tells a person what is left to undo.
    let evidence = settings.evidence.store(settings.evidence_name, finished, &mut EvidenceBudget::default())?;
    if let Some(reason) = failure {
        return Ok(RollbackEnd::Failed { reason, evidence });
    }
    // The line is shown and stored, and may contain a secret.
    let done = vec![format!("ran `{}`", settings.evidence.redact(line))];
    Ok(RollbackEnd::RolledBack { done, way_back: None, evidence: Some(evidence) })
}

/// Returns the artifacts of a contract, and the files and folders that its file locks cover: each pattern up to its first name with
/// a special character. `.` is the whole working directory.
pub fn declared_paths(contract: &Contract, resources: &[ResourceRequest]) -> Vec<String> {
    let locked = resources.iter().flat_map(ResourceRequest::locked_paths);
    contract.artifacts().iter().cloned().chain(locked).collect()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RollbackPlan {
    /// These steps, in words. None if nothing differs.
    Steps(Vec<String>),
    Refused(RollbackRefusal),
}

/// A rollback that is refused. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollbackRefusal {
    pub code: String,
    /// The reason, and what to do.
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum RollbackEnd {
    RolledBack {
        done: Vec<String>,
        /// How to get back what was undone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        way_back: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        evidence: Option<EvidenceFiles>,
    },
    Refused(RollbackRefusal),
    Failed {
        reason: String,
        evidence: EvidenceFiles,
    },
}

impl RollbackRefusal {
    pub(super) fn unavailable(reason: &str) -> Self {
        Self { code: "unavailable".to_owned(), reason: reason.to_owned() }
    }
}

impl RollbackEnd {
    pub(super) fn from_reset(reset: &Reset, root: &Utf8Path) -> Self {
        let mut done = vec![format!("discarded {}", reset.discarded.summary())];
        if !reset.settings.is_empty() {
            let changed = reset.settings.join("`, `");
            done.push(format!("kept changed settings of the repository, review them: `{changed}`"));
        }
        RollbackEnd::RolledBack { done, way_back: reset.way_back(root), evidence: None }
    }
}

impl From<git::Refusal> for RollbackRefusal {
    fn from(refusal: git::Refusal) -> Self {
        Self { code: refusal.code().to_owned(), reason: refusal.to_string() }
    }
}

impl From<SnapshotRefusal> for RollbackRefusal {
    fn from(refusal: SnapshotRefusal) -> Self {
        Self { code: refusal.code().to_owned(), reason: refusal.to_string() }
    }
}

impl Restored {
    /// Returns what is done, in words, with `verbs` for putting back and for removing.
    fn steps(&self, verbs: (&str, &str)) -> Vec<String> {
        let named =
            |verb: &str, paths: &[String]| paths.iter().map(|path| format!("{verb} `{path}`")).collect::<Vec<_>>();
        let mut steps = named(verbs.1, &self.removed);
        steps.extend(named(verbs.0, &self.restored));
        steps
    }
}

impl From<Restored> for RollbackPlan {
    fn from(planned: Restored) -> Self {
        RollbackPlan::Steps(planned.steps(("restore", "remove")))
    }
}

impl From<Restored> for RollbackEnd {
    fn from(restored: Restored) -> Self {
        let done = restored.steps(("restored", "removed"));
        let not_saved = restored.not_saved.join("`, `");
        let except =
            if not_saved.is_empty() { String::new() } else { format!(", except for the special files `{not_saved}`") };
        let way_back = restored.saved.map(|folder| {
            format!("the files as they were before the rollback are in `{folder}/files`{except}; copy them back with `cp -a`")
        });
        RollbackEnd::RolledBack { done, way_back, evidence: None }
    }
}
