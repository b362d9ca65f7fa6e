//! The outcome of one execution.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_redaction::Redactor;
use counterproof_store::write::WriteError;
use jiff::Timestamp;
use serde_json::Value;

use crate::contract::{Contract, ContractId, RollbackStrategy};
use crate::git::{GitError, Protected};
use crate::lifecycle::State;
use crate::process::{Cancellation, EvidenceError, EvidenceFiles, ProcessError};
use crate::resources::{AcquireError, SpecError};
use crate::store::StoreError;
use crate::verification::{PlanError, VerificationReport, VerifyError};

/// What became of a contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The work is done and verified.
    Met,
    /// The contract was completed before.
    AlreadyMet,
    /// The check passed, and a person must approve the work.
    AwaitsApproval,
    /// The agent failed, or the check did.
    NotMet,
    Interrupted,
}

impl Verdict {
    /// True if the contract is met, now or before.
    pub const fn is_met(self) -> bool {
        matches!(self, Verdict::Met | Verdict::AlreadyMet)
    }

    /// The word in documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Verdict::Met => "met",
            Verdict::AlreadyMet => "already_met",
            Verdict::AwaitsApproval => "awaits_approval",
            Verdict::NotMet => "not_met",
            Verdict::Interrupted => "interrupted",
        }
    }
}

/// An execution that has ended.
#[derive(Debug, Clone)]
pub struct Execution {
    pub contract: Contract,
    /// What became of it.
    pub verdict: Verdict,
    pub state: State,
    /// Why it is not met.
    pub reasons: Vec<String>,
    pub agent: Option<AgentRun>,
    /// The output of the agent, redacted.
    pub output: Option<Value>,
    /// The outcome of the verification.
    pub verification: Option<VerificationReport>,
    /// The end of the streams of the last attempt, redacted.
    pub streams: Option<[String; 2]>,
    /// What was done to undo the work.
    pub rollback: Option<RollbackSummary>,
    /// The folder with the evidence.
    pub evidence: Option<Utf8PathBuf>,
    /// The time of the start.
    pub started_at: Timestamp,
    /// The time of the end.
    pub ended_at: Timestamp,
}

/// A finished agent command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRun {
    /// The command line, redacted.
    pub command: String,
    pub exit_code: i32,
    /// The time from its start to its end.
    pub duration_ms: u64,
    /// The record, in the folder with the evidence.
    pub evidence: EvidenceFiles,
}

/// What was done to undo the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollbackSummary {
    /// The strategy of the contract.
    pub strategy: RollbackStrategy,
    pub outcome: RollbackOutcome,
    /// What was done, or why not.
    pub message: String,
    /// How to get the undone work back.
    pub way_back: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RollbackOutcome {
    /// The work is undone.
    RolledBack,
    /// It would throw away work of others, so nothing was changed.
    Refused,
    Failed,
}

impl RollbackOutcome {
    /// The word in documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            RollbackOutcome::RolledBack => "rolled_back",
            RollbackOutcome::Refused => "refused",
            RollbackOutcome::Failed => "failed",
        }
    }
}

impl Execution {
    /// Returns the version of the contract.
    pub const fn version(&self) -> NonZeroU32 {
        self.contract.version
    }
}

/// An execution that could not begin, or that could not be recorded. A contract that is not met is not an error.
#[derive(Debug, thiserror::Error)]
pub enum ExecutionError {
    /// The store refused a request, or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The contract has ended, and only a new version can be run.
    #[error("`{id}` is {state}; add a new version to run it again")]
    Ended { id: ContractId, state: State },
    /// The contract is claimed by someone else.
    #[error("`{id}` is {state}; its owner is `{owner}`")]
    Foreign { id: ContractId, state: State, owner: String },
    /// The expressions or the output schema of the contract are invalid.
    #[error("`{id}`: {}", .errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Invalid {
        id: ContractId,
        /// What is invalid.
        errors: Vec<PlanError>,
    },
    /// The resources of the contract are invalid.
    #[error("`{id}`: {}", .errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Resources {
        id: ContractId,
        /// What is invalid.
        errors: Vec<SpecError>,
    },
    /// The resources are not available.
    #[error(transparent)]
    Acquire(#[from] AcquireError),
    /// The work could not be undone if the execution failed.
    #[error("`{id}` is not run, because it could not be rolled back: {reason}")]
    RollbackImpossible { id: ContractId, reason: String },
    /// The execution began in another folder.
    #[error("the execution of `{id}` began in `{workdir}`; pass `--workdir {workdir}`")]
    OtherWorkdir {
        id: ContractId,
        /// The folder.
        workdir: Utf8PathBuf,
    },
    /// A process of another machine executes the contract, and may be alive.
    #[error("`{id}` is {state} by a process of the machine `{host}`; run it there, or cancel it")]
    OtherMachine {
        id: ContractId,
        state: State,
        /// The name of the machine.
        host: String,
    },
    /// The rollback of the contract was refused or failed, so a person must decide.
    #[error("`{id}` was not rolled back, and needs a decision: approve another attempt, or reject it")]
    NeedsDecision { id: ContractId },
    /// The output file cannot be used.
    #[error("the output `{path}` {problem}")]
    Output {
        /// The file.
        path: Utf8PathBuf,
        problem: String,
    },
    /// A git command failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A command could not be run, or its record could not be stored.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// Evidence could not be stored.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A value could not be written as JSON.
    #[error("cannot write JSON")]
    Json(#[from] serde_json::Error),
}

impl From<VerifyError> for ExecutionError {
    fn from(error: VerifyError) -> Self {
        match error {
            VerifyError::Process(error) => error.into(),
            VerifyError::Evidence(error) => error.into(),
        }
    }
}

impl ExecutionError {
    /// Returns the stable code.
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
            ExecutionError::Evidence(error) => error.code(),
            ExecutionError::Git(_) | ExecutionError::Write(_) | ExecutionError::Json(_) => "storage_error",
        }
    }

    /// True if the execution was interrupted. The next one continues it.
    pub const fn is_interruption(&self) -> bool {
        matches!(
            self,
            ExecutionError::Acquire(AcquireError::Cancelled) | ExecutionError::Process(ProcessError::Cancelled)
        )
    }

    /// True if a file could not be read or written, in contrast to a refused request.
    pub const fn is_io(&self) -> bool {
        match self {
            ExecutionError::Store(error) => error.is_io(),
            ExecutionError::Ended { .. }
            | ExecutionError::Foreign { .. }
            | ExecutionError::Invalid { .. }
            | ExecutionError::Resources { .. }
            | ExecutionError::RollbackImpossible { .. }
            | ExecutionError::OtherWorkdir { .. }
            | ExecutionError::OtherMachine { .. }
            | ExecutionError::NeedsDecision { .. }
            | ExecutionError::Output { .. }
            | ExecutionError::Acquire(
                AcquireError::Conflict(_)
                | AcquireError::NotSet(_)
                | AcquireError::Cancelled
                | AcquireError::Folder { .. },
            ) => false,
            ExecutionError::Acquire(AcquireError::Busy(_) | AcquireError::Registry(_))
            | ExecutionError::Git(_)
            | ExecutionError::Process(_)
            | ExecutionError::Evidence(_)
            | ExecutionError::Write(_)
            | ExecutionError::Json(_) => true,
        }
    }
}

/// Where the output of a contract comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputSource {
    /// A JSON file.
    File(Utf8PathBuf),
    /// A folder with one JSON file for each contract: its case id with `.json`.
    Folder(Utf8PathBuf),
    /// A command line for `sh -c`, which reads the contract's input from standard input and prints the output.
    Command(String),
}

/// Whether failed work is undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RollbackMode {
    /// Right after the failure.
    Automatic,
    /// Not by this execution: the contract stays failed, and its work stays in place.
    Never,
}

/// Settings of executions. They are the same for all contracts of a run.
#[derive(Debug)]
pub struct RunSettings {
    /// The working directory.
    pub workdir: Utf8PathBuf,
    /// Where the outputs come from.
    pub source: OutputSource,
    /// The name of the agent that claims the contracts.
    pub owner: String,
    /// How long to wait for resources that others hold.
    pub wait: Duration,
    /// Whether failed work is undone.
    pub rollback: RollbackMode,
    /// Requires the approval of a person for every contract.
    pub requires_approval: bool,
    /// The time limit of the agent command.
    pub agent_timeout: Duration,
    /// The folder in which the executions of this machine register what they hold.
    pub locks: Utf8PathBuf,
    /// Paths that a rollback leaves as they are: the store, its evidence, and the run folders.
    pub protected: Protected,
    /// Masks secrets in everything that is stored.
    pub redactor: Redactor,
    /// Stops executions.
    pub cancellation: Cancellation,
    pub clock: fn() -> Timestamp,
    /// See [`ShellCommand::supervisor`](crate::process::ShellCommand::supervisor).
    pub supervisor: Option<PathBuf>,
}

impl OutputSource {
    /// Returns the file with the output of a contract, unless a command makes it.
    pub fn file(&self, id: &ContractId) -> Option<Utf8PathBuf> {
        match self {
            OutputSource::File(path) => Some(path.clone()),
            OutputSource::Folder(folder) => Some(output_in(folder, id)),
            OutputSource::Command(_) => None,
        }
    }
}

/// Returns the output file of a contract in a folder of outputs.
pub(super) fn output_in(folder: &Utf8Path, id: &ContractId) -> Utf8PathBuf {
    folder.join(format!("{}.json", id.file_stem()))
}
