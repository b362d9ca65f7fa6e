//! A repository when an execution begins.

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use super::protected::{Protected, is_protected};
use super::repository::Repository;
use super::status::Status;
use super::{Changes, GitError, Refusal};

/// A repository when an execution began: what a reset returns to, and what it must not touch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitStart {
    /// The top folder of the work tree.
    pub root: Utf8PathBuf,
    /// The commit that was checked out.
    pub commit: String,
    /// The full name of the branch that was checked out. `None` if there was none.
    pub branch: Option<String>,
    /// The tracked files that had changes.
    pub changed: Vec<String>,
    /// The files that were not tracked, without ignored ones.
    pub untracked: Vec<String>,
}

impl GitStart {
    /// Records the repository of a folder.
    pub fn record(folder: &Utf8Path) -> Result<Result<Self, Refusal>, GitError> {
        let Some(repository) = Repository::of(folder)? else { return Ok(Err(Refusal::NoRepository)) };
        let Some(commit) = repository.head()? else { return Ok(Err(Refusal::NoCommit)) };
        let branch = repository.branch()?;
        let Status { mut changed, untracked, submodules } = Status::read(&repository)?;
        changed.extend(submodules);
        Ok(Ok(Self { root: repository.root, commit, branch, changed, untracked }))
    }

    /// Returns the tracked files that had changes, without protected ones.
    pub fn changed_without(&self, protected: &Protected) -> Vec<String> {
        let protected = protected.within(&self.root);
        self.changed.iter().filter(|path| !is_protected(path, &protected)).cloned().collect()
    }

    /// True if another record describes the same state, apart from protected files.
    pub fn is_same_state(&self, other: &Self, protected: &Protected) -> bool {
        let within = protected.within(&self.root);
        let files = |paths: &[String]| -> Vec<String> {
            paths.iter().filter(|path| !is_protected(path, &within)).cloned().collect()
        };
        (&self.root, &self.commit, &self.branch) == (&other.root, &other.commit, &other.branch)
            && files(&self.changed) == files(&other.changed)
            && files(&self.untracked) == files(&other.untracked)
    }

    /// Counts how much the work tree of a folder differs now.
    pub fn changes(&self, folder: &Utf8Path) -> Result<Changes, GitError> {
        let Some(repository) = Repository::of(folder)? else { return Ok(Changes::default()) };
        let untracked = Status::read(&repository)?.untracked;
        let new = untracked.iter().filter(|path| !self.untracked.contains(path)).count();
        Changes::count(&repository, &self.commit, new)
    }
}
