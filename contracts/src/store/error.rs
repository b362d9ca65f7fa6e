//! Errors of a store, each with a stable code.

use std::num::NonZeroU32;

use camino::Utf8PathBuf;
use counterproof_store::line_log::LogError;

use super::RecordError;
use crate::contract::{ContractId, ContractKey};
use crate::lifecycle::{State, TransitionError};

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("contract `{0}` not found")]
    NotFound(ContractKey),
    #[error("circular dependency: {}", path(.0))]
    CircularDependency(Vec<ContractId>),
    #[error("`{id}`: {reason}")]
    Transition { id: ContractId, reason: TransitionError },
    #[error("`{id}` is not ready: its dependency `{dependency}` is {state}, not completed")]
    DependencyNotMet { id: ContractId, dependency: ContractId, state: State },
    #[error("`{id}` does not wait for an approval: only its verification completes it")]
    NoApprovalRequested { id: ContractId },
    #[error("`{id}` version {found} cannot be added: the next version is {expected}")]
    VersionConflict { id: ContractId, found: NonZeroU32, expected: u64 },
    #[error("a new version of `{id}` cannot be added while its state is {state}")]
    InUse { id: ContractId, state: State },
    #[error("`{id}` version {version} is superseded by version {latest}")]
    Superseded { id: ContractId, version: NonZeroU32, latest: NonZeroU32 },
    #[error("{path}:{line}: {reason}")]
    Line {
        path: Utf8PathBuf,
        /// Counted from 1.
        line: u64,
        reason: RecordError,
    },
    #[error("{path}:{line}: {reason}")]
    Contradiction {
        path: Utf8PathBuf,
        /// Counted from 1.
        line: u64,
        reason: Contradiction,
    },
    #[error("another program changed `{0}` while it was read")]
    Changed(Utf8PathBuf),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("failed to write a record as JSON")]
    Serialize(#[from] serde_json::Error),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Contradiction {
    #[error("no contract `{0}` before this line")]
    NoContract(ContractId),
    #[error("`{id}` version {version} does not follow version {latest}")]
    Version { id: ContractId, version: NonZeroU32, latest: NonZeroU32 },
    #[error("`{id}`: a transition of version {version}, but the latest is {latest}")]
    OtherVersion { id: ContractId, version: NonZeroU32, latest: NonZeroU32 },
    #[error("`{id}`: a transition from {from}, but the state is {state}")]
    OtherState { id: ContractId, from: State, state: State },
    #[error("`{id}`: invalid transition from {from} to {to}")]
    InvalidTransition { id: ContractId, from: State, to: State },
}

impl StoreError {
    pub const fn code(&self) -> &'static str {
        match self {
            StoreError::NotFound(_) => "not_found",
            StoreError::CircularDependency(_) => "circular_dependency",
            StoreError::Transition { reason: TransitionError::Invalid { .. }, .. } => "invalid_transition",
            StoreError::Transition { reason: TransitionError::NotOwner { .. }, .. } => "not_owner",
            StoreError::Transition { reason: TransitionError::NotAllowed { .. }, .. }
            | StoreError::NoApprovalRequested { .. } => "not_allowed",
            StoreError::DependencyNotMet { .. } => "dependency_not_met",
            StoreError::VersionConflict { .. } => "version_conflict",
            StoreError::InUse { .. } => "in_use",
            StoreError::Superseded { .. } => "superseded",
            StoreError::Line { .. } | StoreError::Contradiction { .. } | StoreError::Log(LogError::TooLong { .. }) => {
                "store_corrupt"
            }
            StoreError::Log(LogError::Locked { .. }) => "locked",
            StoreError::Log(_) | StoreError::Changed(_) | StoreError::Serialize(_) => "storage_error",
        }
    }

    /// True if a file could not be read or written, in contrast to a refused request.
    pub const fn is_io(&self) -> bool {
        matches!(
            self,
            StoreError::Log(_)
                | StoreError::Line { .. }
                | StoreError::Contradiction { .. }
                | StoreError::Changed(_)
                | StoreError::Serialize(_)
        )
    }

    /// Returns what to do, where the message does not say it.
    pub const fn hint(&self) -> Option<&'static str> {
        Some(match self {
            StoreError::CircularDependency(_) => "remove one of these dependencies",
            StoreError::VersionConflict { .. } => "a stored version never changes: change the version and add it again",
            StoreError::InUse { .. } => "wait until the execution ends, or cancel it",
            StoreError::Line { .. } | StoreError::Contradiction { .. } | StoreError::Log(LogError::TooLong { .. }) => {
                "restore the line from a backup, or remove it"
            }
            StoreError::Changed(_) => "try again",
            StoreError::Log(LogError::NoLocks { .. }) => {
                "keep the store on a local file system, and name it with `--store FILE`"
            }
            StoreError::Log(LogError::NewLineTooLong { .. }) => {
                "keep large data in files, and name the files in the contract"
            }
            StoreError::Log(LogError::Locked { .. }) => "wait for the other process, or end it if it hangs",
            _ => return None,
        })
    }
}

pub(crate) fn path(ids: &[ContractId]) -> String {
    ids.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(" → ")
}
