//! A repository of the store: commits, references, and their way to other repositories.

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::git::{GitError, GitOptions};
use crate::snapshot::{Snapshot, Workspace};

/// The name of a repository in the store: the same for the same source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RepositoryId(String);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Author {
    pub name: String,
    pub email: String,
}

/// A bare repository of the store. It needs no other repository.
#[derive(Debug, Clone)]
pub struct StoredRepository {
    path: Utf8PathBuf,
    options: GitOptions,
}

/// A commit to copy to another repository.
#[derive(Debug, Clone, Copy)]
pub struct Push<'a> {
    pub commit: &'a str,
    /// A path, or a URL with the protocol `file`, `https` or `ssh`.
    pub url: &'a str,
    /// The full name of the reference, such as `refs/heads/fix`.
    pub reference: &'a str,
    pub update: Update<'a>,
    /// Variables for `git`, such as those with a token.
    pub environment: &'a [(String, String)],
}

/// How a reference of the other repository may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Update<'a> {
    /// It is created, or moved to a descendant.
    FastForward,
    /// It is moved to any commit, if it still has the expected one. `None`: if it does not exist.
    Replace { expected: Option<&'a str> },
}

#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    #[error(transparent)]
    Git(#[from] GitError),
}

impl StoredRepository {
    /// The bare repository.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// Creates a workspace in a folder that does not exist, with the files of a commit.
    pub fn create(&self, _commit: &str, _folder: &Utf8Path) -> Result<Workspace, WorkspaceError> {
        let _ = &self.options;
        todo!()
    }

    /// Makes the folder a workspace with exactly the files of a snapshot. Ignored files in a folder that exists are kept.
    pub fn restore(&self, _snapshot: &Snapshot, _folder: &Utf8Path) -> Result<Workspace, WorkspaceError> {
        todo!()
    }

    /// Opens a workspace as it is.
    pub fn open(&self, _folder: &Utf8Path) -> Result<Workspace, WorkspaceError> {
        todo!()
    }

    /// Returns the tree to commit for a snapshot: without outputs of builds, unless the base has files there.
    pub fn publishable_tree(&self, _snapshot: &Snapshot) -> Result<String, WorkspaceError> {
        todo!()
    }

    /// Creates a commit. The same arguments give the same commit.
    pub fn commit(
        &self,
        _tree: &str,
        _parents: &[&str],
        _message: &str,
        _author: &Author,
        _at: Timestamp,
    ) -> Result<String, WorkspaceError> {
        todo!()
    }

    /// Returns the bytes of a file, or the target of a link. `None` if the commit or tree has no such file.
    pub fn file_at(&self, _commit_or_tree: &str, _path: &str) -> Result<Option<Vec<u8>>, WorkspaceError> {
        todo!()
    }

    pub fn push(&self, _push: &Push<'_>) -> Result<(), WorkspaceError> {
        todo!()
    }

    /// Creates or moves a reference below `refs/counterproof/`, so that a commit is not removed.
    pub fn keep(&self, _reference: &str, _commit: &str) -> Result<(), WorkspaceError> {
        todo!()
    }

    /// Removes a reference below `refs/counterproof/`. A reference that does not exist is not an error.
    pub fn release(&self, _reference: &str) -> Result<(), WorkspaceError> {
        todo!()
    }

    /// Writes commits with their whole history into one file.
    pub fn bundle(&self, _commits: &[String], _out: &Utf8Path) -> Result<(), WorkspaceError> {
        todo!()
    }
}
