//! Errors of executions, each with a stable code.

use camino::Utf8PathBuf;
use counterproof_store::write::WriteError;

use crate::contract::ContractId;
use crate::git::GitError;
use crate::lifecycle::State;
use crate::process::{EvidenceError, ProcessError};
use crate::resources::{AcquireError, SpecError};
use crate::store::StoreError;
use crate::verification::{PlanError, VerifyError};

/// An execution that could not begin, or that could not be recorded. A contract that is not met is no error.
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
