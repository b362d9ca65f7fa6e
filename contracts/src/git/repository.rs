//! A repository: its folder and what is checked out.

use camino::{Utf8Path, Utf8PathBuf};

use super::GitError;
use super::command::Git;

/// Files and folders in the git folder that exist while an operation is in progress.
const OPERATIONS: [(&str, &str); 6] = [
    ("MERGE_HEAD", "a merge"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("BISECT_LOG", "a bisection"),
];

/// A repository with a work tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Repository {
    /// The top folder of the work tree.
    pub(super) root: Utf8PathBuf,
    /// The working directory relative to `root`, with a slash at its end; empty for `root` itself.
    pub(super) prefix: String,
}

impl Repository {
    /// Finds the repository of a folder. Returns `None` if it is in none.
    pub(super) fn of(folder: &Utf8Path) -> Result<Option<Self>, GitError> {
        match Git::new(folder, &["rev-parse", "--show-toplevel", "--show-prefix"]).output() {
            Ok(output) => {
                let text = String::from_utf8(output).map_err(|_| GitError::Output("rev-parse".to_owned()))?;
                let mut lines = text.split('\n');
                let root = lines.next().unwrap_or_default().into();
                Ok(Some(Self { root, prefix: lines.next().unwrap_or_default().to_owned() }))
            }
            Err(GitError::Failed { message, .. })
                if message.contains("not a git repository") || message.contains("must be run in a work tree") =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn git(&self, arguments: &[&str]) -> Git {
        Git::new(&self.root, arguments)
    }

    /// Returns the commit that is checked out. `None` in a repository without commits.
    pub(super) fn head(&self) -> Result<Option<String>, GitError> {
        match self.git(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).text() {
            Ok(commit) => Ok(Some(commit)),
            Err(GitError::Failed { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the full name of the branch that is checked out. `None` for a detached HEAD.
    pub(super) fn branch(&self) -> Result<Option<String>, GitError> {
        match self.git(&["symbolic-ref", "--quiet", "HEAD"]).text() {
            Ok(branch) => Ok(Some(branch)),
            Err(GitError::Failed { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the operation that is in progress, such as a merge.
    pub(super) fn operation(&self) -> Result<Option<&'static str>, GitError> {
        for (name, operation) in OPERATIONS {
            let path = self.git(&["rev-parse", "--git-path", name]).text()?;
            if self.root.join(path).exists() {
                return Ok(Some(operation));
            }
        }
        Ok(None)
    }

    /// True if only a part of the files is checked out.
    pub(super) fn is_sparse(&self) -> Result<bool, GitError> {
        let value = self.git(&["config", "--bool", "--default", "false", "--get", "core.sparseCheckout"]).text()?;
        Ok(value == "true")
    }
}
