//! Errors and refusals of snapshots.

use std::fmt;
use std::io;

use camino::Utf8PathBuf;
use counterproof_store::write::WriteError;

/// A snapshot that could not be taken or restored.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// A declared path is not one of a file or folder in the working directory.
    #[error("the declared path `{path}` {reason}")]
    Path { path: String, reason: String },
    /// A pipe, a socket or a device.
    #[error("`{0}` is a pipe, a socket or a device, which has no copy; remove it, or do not declare it")]
    Special(String),
    /// The declared paths have too many bytes or entries.
    #[error("the declared paths have more than {limit}; declare fewer paths")]
    TooLarge {
        /// The limit, with its unit.
        limit: String,
    },
    /// A file or folder could not be read or changed.
    #[error("cannot {action} `{path}`")]
    Io {
        /// What was tried.
        action: &'static str,
        path: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The snapshot could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The snapshot was changed or removed.
    #[error("the snapshot `{folder}` cannot be used: {reason}")]
    Damaged { folder: Utf8PathBuf, reason: String },
}

impl SnapshotError {
    pub(super) fn io(action: &'static str, path: &impl ToString) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_string();
        move |source| SnapshotError::Io { action, path, source }
    }

    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            SnapshotError::Path { .. } => "invalid_path",
            SnapshotError::Special(_) => "special_file",
            SnapshotError::TooLarge { .. } => "snapshot_too_large",
            SnapshotError::Damaged { .. } => "snapshot_damaged",
            SnapshotError::Io { .. } | SnapshotError::Write(_) => "storage_error",
        }
    }
}

/// Why a snapshot is not restored. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SnapshotRefusal {
    /// A folder above a declared path is something else now: restoring would write elsewhere.
    ParentReplaced(String),
    /// The files as they are now exceed a limit, so they cannot be saved before they are replaced.
    TooLarge(String),
}

impl SnapshotRefusal {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            SnapshotRefusal::ParentReplaced(_) => "parent_replaced",
            SnapshotRefusal::TooLarge(_) => "snapshot_too_large",
        }
    }
}

impl fmt::Display for SnapshotRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SnapshotRefusal::ParentReplaced(path) => {
                write!(f, "`{path}` is no folder any more, but a file or a link; move it away, and roll back again")
            }
            SnapshotRefusal::TooLarge(limit) => {
                write!(f, "the files as they are now have more than {limit}, too many to save them before the rollback")
            }
        }
    }
}
