//! A temporary checkout of a commit: a detached git worktree in the system's folder for temporary files.
//!
//! Each worktree is in a folder of its own, next to a lock file. The system releases the lock when the process ends for any
//! reason, so the next start finds and removes what a killed process has left.

use std::io;
use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::FileLock;
use tempfile::TempDir;

/// The start of the names of the folders.
const PREFIX: &str = "counterproof-ref-";

/// The worktree in its folder.
const TREE: &str = "tree";

/// The lock file next to the worktree.
const LOCK: &str = "lock";

/// A temporary worktree. Dropping it removes the worktree and what git knows about it.
#[derive(Debug)]
pub struct TemporaryWorktree {
    repository: Utf8PathBuf,
    /// The folder in the worktree that corresponds to the given one.
    folder: Utf8PathBuf,
    commit: String,
    outer: TempDir,
    tree: Utf8PathBuf,
    _lock: Option<FileLock>,
}

/// Why a commit could not be checked out.
#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    /// The folder is not in a git repository.
    #[error("`ref` needs a git repository, and `{folder}` is not in one: {message}")]
    NoRepository {
        /// The folder.
        folder: Utf8PathBuf,
        /// The message of git.
        message: String,
    },
    /// The repository has no such commit.
    #[error("the repository has no commit `{0}`")]
    UnknownCommit(String),
    /// The commit could not be checked out.
    #[error("cannot check out `{reference}`: {message}")]
    Checkout {
        /// The commit.
        reference: String,
        /// The message of git.
        message: String,
    },
    /// Git could not be started.
    #[error("cannot run `git`")]
    Git(#[source] io::Error),
    /// The temporary folder could not be created.
    #[error("cannot create a temporary folder for `ref`")]
    Folder(#[source] io::Error),
}

impl TemporaryWorktree {
    /// Checks out `reference` of the repository that contains `folder`. Removes worktrees that killed processes have left.
    pub fn create(folder: &Utf8Path, reference: &str) -> Result<Self, WorktreeError> {
        let no_repository = |message| WorktreeError::NoRepository { folder: folder.to_owned(), message };
        let repository = Utf8PathBuf::from(git(folder, &["rev-parse", "--show-toplevel"])?.map_err(no_repository)?);
        let prefix = git(folder, &["rev-parse", "--show-prefix"])?.map_err(no_repository)?;
        let commit = commit_of(folder, reference)?;
        remove_leftovers(&repository)?;

        let outer = tempfile::Builder::new().prefix(PREFIX).tempdir().map_err(WorktreeError::Folder)?;
        let not_utf8 = || WorktreeError::Folder(io::Error::other("its path is not UTF-8"));
        // Git stores resolved paths.
        let path = outer.path().canonicalize().map_err(WorktreeError::Folder)?;
        let path = Utf8PathBuf::from_path_buf(path).map_err(|_| not_utf8())?;
        // Before git knows the worktree: another process would remove it otherwise.
        let lock = FileLock::try_lock(&path.join(LOCK)).map_err(WorktreeError::Folder)?;
        let tree = path.join(TREE);
        // From here on, dropping it cleans up.
        let worktree = Self { repository, folder: tree.join(prefix), commit: commit.clone(), outer, tree, _lock: lock };
        let add = ["worktree", "add", "--quiet", "--detach", worktree.tree.as_str(), &commit];
        match git(&worktree.repository, &add)? {
            Ok(_) => Ok(worktree),
            Err(message) => Err(WorktreeError::Checkout { reference: reference.to_owned(), message }),
        }
    }

    /// Returns the folder in the worktree that corresponds to the one that was given.
    pub fn folder(&self) -> &Utf8Path {
        &self.folder
    }

    /// Returns the id of the commit.
    pub fn commit(&self) -> &str {
        &self.commit
    }
}

/// Returns the full id of the commit that a reference names, in the repository of a folder.
pub fn commit_of(folder: &Utf8Path, reference: &str) -> Result<String, WorktreeError> {
    let revision = format!("{reference}^{{commit}}");
    let commit = git(folder, &["rev-parse", "--verify", "--quiet", "--end-of-options", &revision])?;
    commit.map_err(|_| WorktreeError::UnknownCommit(reference.to_owned()))
}

impl Drop for TemporaryWorktree {
    fn drop(&mut self) {
        remove(&self.repository, &self.tree);
        // The folder itself is removed when `outer` is dropped, also if git has failed.
        let _ = std::fs::remove_dir_all(self.outer.path());
        forget(&self.repository, &self.tree);
    }
}

/// Removes the worktrees of this repository whose processes are gone.
fn remove_leftovers(repository: &Utf8Path) -> Result<(), WorktreeError> {
    let Ok(listed) = git(repository, &["worktree", "list", "--porcelain"])? else { return Ok(()) };
    for tree in listed.lines().filter_map(|line| line.strip_prefix("worktree ")).map(Utf8Path::new) {
        let Some(outer) = tree.parent() else { continue };
        let is_ours = tree.file_name() == Some(TREE) && outer.file_name().is_some_and(|name| name.starts_with(PREFIX));
        if !is_ours {
            continue;
        }
        let lock = if outer.exists() { FileLock::try_lock(&outer.join(LOCK)).ok().flatten() } else { None };
        if lock.is_some() || !outer.exists() {
            remove(repository, tree);
            let _ = std::fs::remove_dir_all(outer);
            forget(repository, tree);
        }
    }
    Ok(())
}

fn remove(repository: &Utf8Path, tree: &Utf8Path) {
    // An error leaves an entry, which is removed below or at the next start.
    let _ = git(repository, &["worktree", "remove", "--force", "--force", tree.as_str()]);
}

/// Removes what git knows about a worktree whose folder is gone.
fn forget(repository: &Utf8Path, tree: &Utf8Path) {
    let listed = git(repository, &["worktree", "list", "--porcelain"]).ok().and_then(Result::ok).unwrap_or_default();
    // Other worktrees stay: their folder may be on a disk that is not mounted now.
    if listed.lines().any(|line| line.strip_prefix("worktree ") == Some(tree.as_str())) {
        remove(repository, tree);
    }
}

/// Runs git in a folder. Returns its output without the final line break, or its message.
fn git(folder: &Utf8Path, arguments: &[&str]) -> Result<Result<String, String>, WorktreeError> {
    let mut command = Command::new("git");
    // Hooks are for the checkouts in which people work.
    command.args(["-C", folder.as_str(), "-c", "core.hooksPath=/dev/null"]).args(arguments);
    // Git sets these for hooks, and they would select another repository.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY"] {
        command.env_remove(name);
    }
    // Ctrl-C must not end the removal of a worktree.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let output = command.stdin(Stdio::null()).output().map_err(WorktreeError::Git)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    Ok(if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) })
}
