//! The folder of the copies of repositories, and how a repository gets into it.

use camino::{Utf8Path, Utf8PathBuf};

use crate::git::GitOptions;
use crate::repository::{Author, RepositoryId, StoredRepository, WorkspaceError};

/// A folder with one bare repository for each source repository.
#[derive(Debug, Clone)]
pub struct WorkspaceStore {
    folder: Utf8PathBuf,
    options: GitOptions,
}

/// Where the work on a repository starts.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Start {
    pub repository: RepositoryId,
    pub commit: String,
    /// The short name of the branch. `None` for a detached HEAD.
    pub branch: Option<String>,
    pub author: Author,
    /// The URL of the remote `origin` without a password.
    pub origin: Option<String>,
}

impl WorkspaceStore {
    pub fn new(folder: Utf8PathBuf, options: GitOptions) -> Self {
        Self { folder, options }
    }

    /// Copies a repository into the store: a path, or a URL with the settings and credentials of the user. Nothing below the
    /// repository of the user is written. A second call for the same source copies only what is new.
    pub fn import(&self, _source: &str, _branch: Option<&str>) -> Result<Start, WorkspaceError> {
        todo!()
    }

    pub fn open(&self, _repository: &RepositoryId) -> Result<StoredRepository, WorkspaceError> {
        let _ = (&self.folder, &self.options);
        todo!()
    }

    /// Adds the commits of a file that [`StoredRepository::bundle`] has written.
    pub fn unbundle(&self, _repository: &RepositoryId, _file: &Utf8Path) -> Result<StoredRepository, WorkspaceError> {
        todo!()
    }
}
