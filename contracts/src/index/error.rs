//! Errors of an index.

use std::num::NonZeroU32;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::line_log::LogError;

use crate::contract::ContractId;
use crate::lifecycle::State;
use crate::record::RecordError;

/// Lines that cannot be indexed, or an index that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// A line that is no valid record.
    #[error("{path}:{line}: {reason}")]
    Line {
        /// The file.
        path: Utf8PathBuf,
        /// The line, counted from 1.
        line: u64,
        reason: RecordError,
    },
    /// A record that contradicts the lines before it.
    #[error("{path}:{line}: {reason}")]
    Contradiction {
        /// The file.
        path: Utf8PathBuf,
        /// The line, counted from 1.
        line: u64,
        reason: Contradiction,
    },
    /// Another program replaced the file while it was read.
    #[error("another program changed `{path}` while it was read")]
    Changed {
        /// The file.
        path: Utf8PathBuf,
    },
    /// The file of lines cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The index file cannot be used.
    #[error("failed to use the index `{path}`")]
    Database {
        /// The file.
        path: Utf8PathBuf,
        /// The error of the database.
        source: rusqlite::Error,
    },
}

/// How a record contradicts the lines before it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Contradiction {
    /// A transition or a note of a contract that does not exist.
    #[error("no contract `{0}` before this line")]
    NoContract(ContractId),
    /// A version that is not higher than the latest one.
    #[error("`{id}` version {version} does not follow version {latest}")]
    Version {
        id: ContractId,
        /// The version of the line.
        version: NonZeroU32,
        /// The latest version before.
        latest: NonZeroU32,
    },
    /// A transition of a version that is not the latest one.
    #[error("`{id}`: a transition of version {version}, but the latest is {latest}")]
    OtherVersion {
        id: ContractId,
        /// The version of the line.
        version: NonZeroU32,
        /// The latest version before.
        latest: NonZeroU32,
    },
    /// A transition from another state.
    #[error("`{id}`: a transition from {from}, but the state is {state}")]
    OtherState {
        id: ContractId,
        /// The state before, as the line has it.
        from: State,
        state: State,
    },
    /// A transition that is not in the table.
    #[error("`{id}`: invalid transition from {from} to {to}")]
    InvalidTransition { id: ContractId, from: State, to: State },
}

/// True if the content of an index file cannot be right.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{
        FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, SqliteFailure, Utf8Error,
    };
    use rusqlite::ErrorCode::{ConstraintViolation, DatabaseCorrupt, NotADatabase};

    match error {
        SqliteFailure(failure, _) => matches!(failure.code, DatabaseCorrupt | NotADatabase | ConstraintViolation),
        // The program writes no such values.
        FromSqlConversionFailure(..) | IntegralValueOutOfRange(..) | InvalidColumnType(..) | Utf8Error(..) => true,
        _ => false,
    }
}

impl IndexError {
    /// True if the index file is damaged.
    pub(super) fn is_damage(&self) -> bool {
        matches!(self, IndexError::Database { source, .. } if is_damage(source))
    }

    pub(super) fn database(path: &Utf8Path) -> impl FnOnce(rusqlite::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| IndexError::Database { path, source }
    }
}
