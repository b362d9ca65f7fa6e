//! A repository when an execution begins.

use camino::Utf8Path;
use counterproof_artifact::Sha256Digest;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::differences::{Changes, Differences};
use super::manifest::Manifest;
use super::private::{Objects, PrivateGit};
use super::protected::is_protected;
use super::repository::{Repository, Status};
use super::{GitError, GitOptions, Protected, Refusal};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitStart {
    #[serde(flatten)]
    pub(super) repository: Repository,
    /// The working directory relative to `root`, with a slash at its end; empty for the top folder itself.
    pub(super) prefix: String,
    pub commit: String,
    /// The full name of the branch that was checked out. `None` if there was none.
    pub branch: Option<String>,
    pub changed: Vec<String>,
    /// The files that were not tracked, without ignored ones.
    pub untracked: Vec<String>,
    /// By the clock of the file system. `None` in the record of an older version.
    #[serde(default)]
    pub(super) recorded_at: Option<Timestamp>,
    /// The object with everything else that a reset needs.
    pub(super) manifest: String,
}

/// A repository at one moment, to be compared with another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryState {
    pub commit: Option<String>,
    pub branch: Option<String>,
    /// The digest of all differences from the start.
    pub differences: Sha256Digest,
}

impl GitStart {
    /// Records a repository before the work begins. It stores objects in the repository, and changes nothing else.
    pub fn record(folder: &Utf8Path, options: &GitOptions) -> Result<Result<Self, Refusal>, GitError> {
        let found = match Found::read(folder, options)? {
            Ok(found) => found,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let Found { repository, prefix, commit, branch, status: Status { changed, untracked } } = found;
        let private = PrivateGit::new(&repository, &commit, Objects::Repository, options)?;
        let recorded_at = Some(private.created_at()?);
        match Manifest::record(&repository, &private, &commit, &untracked, options)? {
            Ok(manifest) => {
                Ok(Ok(Self { repository, prefix, commit, branch, changed, untracked, recorded_at, manifest }))
            }
            Err(submodule) => Ok(Err(Refusal::Submodules(vec![submodule]))),
        }
    }

    /// Checks whether an execution could begin and be undone later. Changes nothing.
    pub fn check(
        folder: &Utf8Path,
        protected: &Protected,
        options: &GitOptions,
    ) -> Result<Result<(), Refusal>, GitError> {
        Ok(Found::read(folder, options)?.and_then(|found| {
            let changed = unprotected(&found.status.changed, &found.repository.root, protected);
            if changed.is_empty() { Ok(()) } else { Err(Refusal::ChangedBefore(changed)) }
        }))
    }

    /// Returns the top folder of the work tree.
    pub fn root(&self) -> &Utf8Path {
        &self.repository.root
    }

    pub fn changed_without(&self, protected: &Protected) -> Vec<String> {
        unprotected(&self.changed, &self.repository.root, protected)
    }

    /// Returns the state of the repository now.
    pub fn state(&self, protected: &Protected, options: &GitOptions) -> Result<RepositoryState, GitError> {
        let (_, _, differences) = self.differences(protected, Objects::Temporary, options)?;
        Ok(RepositoryState {
            commit: self.repository.head(options)?,
            branch: self.repository.branch(options)?,
            differences: differences.digest(),
        })
    }

    /// Counts what has changed since the start.
    pub fn changes(&self, protected: &Protected, options: &GitOptions) -> Result<Changes, GitError> {
        let (private, _, differences) = self.differences(protected, Objects::Temporary, options)?;
        differences.count(self, &private)
    }

    pub(super) fn differences(
        &self,
        protected: &Protected,
        written: Objects,
        options: &GitOptions,
    ) -> Result<(PrivateGit, Manifest, Differences), GitError> {
        self.repository.check_files()?;
        let private = PrivateGit::new(&self.repository, &self.commit, written, options)?;
        let manifest = Manifest::load(&private, &self.manifest)?;
        let differences = Differences::find(self, &manifest, &private, protected, options)?;
        Ok((private, manifest, differences))
    }
}

/// What is checked before a start is recorded.
struct Found {
    repository: Repository,
    prefix: String,
    commit: String,
    branch: Option<String>,
    status: Status,
}

impl Found {
    fn read(folder: &Utf8Path, options: &GitOptions) -> Result<Result<Self, Refusal>, GitError> {
        let Some((repository, prefix)) = Repository::find(folder, options)? else {
            return Ok(Err(Refusal::NoRepository));
        };
        let Some(commit) = repository.head(options)? else { return Ok(Err(Refusal::NoCommit)) };
        // In a sparse checkout, a missing file may be one that was never checked out, or one that the work has removed.
        if repository.is_sparse(options)? {
            return Ok(Err(Refusal::Sparse));
        }
        let branch = repository.branch(options)?;
        let status = Status::read(&repository, options)?;
        Ok(Ok(Self { repository, prefix, commit, branch, status }))
    }
}

fn unprotected(paths: &[String], root: &Utf8Path, protected: &Protected) -> Vec<String> {
    let protected = protected.within(root);
    paths.iter().filter(|path| !is_protected(path, &protected)).cloned().collect()
}
