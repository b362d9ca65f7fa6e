//! Snapshots of a workspace: its files as a commit in the store.

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use crate::repository::{RepositoryId, StoredRepository, WorkspaceError};

/// A folder with the files of a repository, to work in. Its `.git` is for the agent: no command of this crate reads it.
#[derive(Debug)]
pub struct Workspace {
    pub(crate) store: StoredRepository,
    pub(crate) folder: Utf8PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotOptions {
    /// The reference of the snapshot, below [`CHECKPOINTS`](crate::CHECKPOINTS). It is moved if it exists.
    pub reference: String,
    /// Files and folders to save although they are ignored, relative to the workspace.
    pub include_ignored: Vec<String>,
    /// Maximum bytes of new content.
    pub max_bytes: u64,
}

/// The files of a workspace at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    pub repository: RepositoryId,
    /// The commit that the work started from: the parent of `commit`.
    pub base: String,
    pub commit: String,
    pub tree: String,
    /// Folders without files, which git does not record.
    pub empty_folders: Vec<String>,
    pub include_ignored: Vec<String>,
    pub left_out: Vec<LeftOut>,
}

/// An entry of the workspace that a snapshot cannot hold. Ignored files are not listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    pub path: String,
    pub reason: String,
}

impl Workspace {
    pub fn folder(&self) -> &Utf8Path {
        &self.folder
    }

    /// Saves the files of the workspace. The objects are on disk when this returns.
    pub fn snapshot(&mut self, _options: &SnapshotOptions) -> Result<Snapshot, WorkspaceError> {
        todo!()
    }
}
