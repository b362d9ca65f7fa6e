//! Differences between two commits or trees of the store.

use serde::{Deserialize, Serialize};

use crate::repository::{StoredRepository, WorkspaceError};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    Created,
    Modified,
    Deleted,
}

/// The changed lines of a file, as `git diff --numstat` counts them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStat {
    pub path: String,
    pub status: ChangeKind,
    /// `None` for a binary file.
    pub added: Option<u64>,
    pub removed: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeChange {
    pub path: String,
    pub change: ChangeKind,
    /// The digest of the bytes, or of the target of a link. `None` where there is no file.
    pub before_sha256: Option<String>,
    pub after_sha256: Option<String>,
    /// A unified diff. `None` for binary and for large files.
    pub patch: Option<String>,
}

impl StoredRepository {
    /// Returns the changed files, without detection of renames.
    pub fn numstat(&self, _base: &str, _head: &str) -> Result<Vec<FileStat>, WorkspaceError> {
        todo!()
    }

    pub fn changes(&self, _from_tree: &str, _to_tree: &str) -> Result<Vec<TreeChange>, WorkspaceError> {
        todo!()
    }
}
