//! The outcome of one execution.

use std::path::PathBuf;
use std::time::Duration;

use camino::Utf8PathBuf;
use counterproof_redaction::Redactor;
use counterproof_store::write::WriteError;
use jiff::Timestamp;
use serde_json::Value;

use super::undo::RollbackSummary;
use crate::contract::{Contract, ContractId};
use crate::git::{GitError, GitOptions, Protected};
use crate::lifecycle::State;
use crate::process::{Cancellation, EvidenceFiles, ProcessError};
use crate::resources::{LeaseError, SpecError};
use crate::store::StoreError;
use crate::verification::{PlanError, VerificationReport};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerificationStatus {
    Met,
    AlreadyMet,
    /// The check passed, and a person must approve the work.
    AwaitsApproval,
    /// The agent failed, or the check did.
    NotMet,
    Interrupted,
}

impl VerificationStatus {
    pub const fn is_met(self) -> bool {
        matches!(self, VerificationStatus::Met | VerificationStatus::AlreadyMet)
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            VerificationStatus::Met => "met",
            VerificationStatus::AlreadyMet => "already_met",
            VerificationStatus::AwaitsApproval => "awaits_approval",
            VerificationStatus::NotMet => "not_met",
            VerificationStatus::Interrupted => "interrupted",
        }
    }
}

#[derive(Debug, Clone)]
pub struct Execution {
    pub contract: Contract,
    pub verdict: VerificationStatus,
    pub state: State,
    pub reasons: Vec<String>,
    pub agent: Option<AgentRun>,
    /// The output of the agent, redacted.
    pub output: Option<Value>,
    pub verification: Option<VerificationReport>,
    /// The end of the streams of the last attempt, redacted.
    pub streams: Option<[String; 2]>,
    pub rollback: Option<RollbackSummary>,
    pub evidence: Option<Utf8PathBuf>,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRun {
    /// The command line, redacted.
    pub command: String,
    pub exit_code: i32,
    pub duration_ms: u64,
    pub evidence: EvidenceFiles,
}

/// An execution that could not begin, or that could not be recorded. A contract that is not met is not an error.
#[derive(Debug, thiserror::Error)]
pub enum ExecutionError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("`{id}` is {state}; add a new version to run it again")]
    Ended { id: ContractId, state: State },
    #[error("`{id}` is {state}; its owner is `{owner}`")]
    Foreign { id: ContractId, state: State, owner: String },
    #[error("`{id}`: {}", .errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Invalid { id: ContractId, errors: Vec<PlanError> },
    #[error("`{id}`: {}", .errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Resources { id: ContractId, errors: Vec<SpecError> },
    #[error(transparent)]
    Acquire(#[from] LeaseError),
    #[error("`{id}` is not run, because it could not be rolled back: {reason}")]
    RollbackImpossible { id: ContractId, reason: String },
    #[error("the execution of `{id}` began in `{workdir}`; pass `--workdir {workdir}`")]
    OtherWorkdir { id: ContractId, workdir: Utf8PathBuf },
    #[error("`{id}` is {state} by a process of the machine `{host}`; run it there, or cancel it")]
    OtherMachine { id: ContractId, state: State, host: String },
    #[error("`{id}` was not rolled back, and needs a decision: approve another attempt, or reject it")]
    NeedsDecision { id: ContractId },
    #[error("the output `{path}` {problem}")]
    Output { path: Utf8PathBuf, problem: String },
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("cannot write JSON")]
    Json(#[from] serde_json::Error),
}

impl ExecutionError {
    pub const fn code(&self) -> &'static str {
        match self {
            ExecutionError::Store(error) => error.code(),
            ExecutionError::Ended { .. } => "ended",
            ExecutionError::Foreign { .. } => "not_owner",
            ExecutionError::Invalid { .. } | ExecutionError::Resources { .. } => "invalid_contract",
            ExecutionError::Acquire(error) => error.code(),
            ExecutionError::RollbackImpossible { .. } => "rollback_impossible",
            ExecutionError::OtherWorkdir { .. } => "other_workdir",
            ExecutionError::OtherMachine { .. } => "other_machine",
            ExecutionError::NeedsDecision { .. } => "needs_decision",
            ExecutionError::Output { .. } => "invalid_output",
            ExecutionError::Process(error) => error.code(),
            ExecutionError::Git(_) | ExecutionError::Write(_) | ExecutionError::Json(_) => "storage_error",
        }
    }

    /// True if the execution was interrupted. The next one continues it.
    pub const fn is_interruption(&self) -> bool {
        matches!(
            self,
            ExecutionError::Acquire(LeaseError::Cancelled) | ExecutionError::Process(ProcessError::Cancelled)
        )
    }

    /// True if a file could not be read or written, in contrast to a refused request.
    pub const fn is_io(&self) -> bool {
        match self {
            ExecutionError::Store(error) => error.is_io(),
            // The registry failed. A conflict is a refusal, not a failure.
            ExecutionError::Acquire(LeaseError::Busy(_) | LeaseError::Registry(_))
            | ExecutionError::Git(_)
            | ExecutionError::Process(_)
            | ExecutionError::Write(_)
            | ExecutionError::Json(_) => true,
            _ => false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputSource {
    File(Utf8PathBuf),
    /// A folder with one JSON file for each contract: its case id with `.json`.
    Folder(Utf8PathBuf),
    /// A command line for `sh -c`, which reads the contract's input from standard input and prints the output.
    Command(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RollbackMode {
    /// Right after the failure.
    Automatic,
    /// Not by this execution: the contract stays failed, and its work stays in place.
    Never,
}

#[derive(Debug)]
pub struct RunSettings {
    pub workdir: Utf8PathBuf,
    pub source: OutputSource,
    /// The name of the agent that locks the contracts.
    pub owner: String,
    /// How long to wait for resources that others hold.
    pub wait: Duration,
    pub rollback: RollbackMode,
    pub requires_approval: bool,
    pub agent_timeout: Duration,
    pub locks: Utf8PathBuf,
    /// Paths that a rollback leaves as they are: the store, its evidence, and the run folders.
    pub protected: Protected,
    /// Masks secrets in everything that is stored.
    pub redactor: Redactor,
    pub cancellation: Cancellation,
    pub clock: fn() -> Timestamp,
    /// See [`ShellCommand::supervisor`](crate::process::ShellCommand::supervisor).
    pub supervisor: Option<PathBuf>,
}

impl RunSettings {
    pub(super) fn git(&self) -> GitOptions {
        GitOptions { supervisor: self.supervisor.clone(), ..GitOptions::default() }
    }
}

impl OutputSource {
    /// Returns the file with the output of a contract, unless a command makes it.
    pub fn file(&self, id: &ContractId) -> Option<Utf8PathBuf> {
        match self {
            OutputSource::File(path) => Some(path.clone()),
            OutputSource::Folder(folder) => Some(folder.join(format!("{}.json", id.file_stem()))),
            OutputSource::Command(_) => None,
        }
    }
}
