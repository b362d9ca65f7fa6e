//! A repository of the store: its objects and its references.

use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Sha256Digest;
use counterproof_store::read_file;
use counterproof_store::write::WriteError;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::git::{Git, GitError, GitOptions};

/// The start of all references that the caller can create or remove.
const REFERENCES: &str = "refs/counterproof/";

/// The number of digits of a digest in the name of a stored repository.
const ID_DIGITS: usize = 32;

/// The name of a repository in the store: the same for the same source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RepositoryId(String);

impl RepositoryId {
    /// The id for a path without links, or a URL without a password.
    pub(crate) fn new(source: &str) -> Self {
        let digest = Sha256Digest::from_bytes(source.as_bytes()).to_string();
        Self(digest.rsplit(':').next().unwrap_or_default().chars().take(ID_DIGITS).collect())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for RepositoryId {
    type Error = WorkspaceError;

    fn try_from(text: String) -> Result<Self, WorkspaceError> {
        // It becomes a part of a path.
        let is_valid = text.len() == ID_DIGITS && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if is_valid { Ok(Self(text)) } else { Err(WorkspaceError::InvalidId(text)) }
    }
}

impl From<RepositoryId> for String {
    fn from(id: RepositoryId) -> Self {
        id.0
    }
}

impl fmt::Display for RepositoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Author {
    pub name: String,
    pub email: String,
}

#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("cannot read or change `{}`", path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("`{0}` is not a git repository, or git refuses to read it: {1}")]
    NotARepository(String, String),
    #[error("`{0}` has no commit to start from")]
    NoCommit(String),
    #[error("`{source_name}` has no branch `{branch}`")]
    NoBranch { source_name: String, branch: String },
    #[error(
        "`{0}` is a partial clone without all files of the commit: fetch them first, for example with `git checkout`"
    )]
    Partial(String),
    #[error("another process has used `{0}` for too long")]
    Busy(Utf8PathBuf),
    #[error("invalid id of a repository: {0:?}")]
    InvalidId(String),
    #[error("the store has no repository {0}")]
    UnknownRepository(RepositoryId),
    #[error("the snapshot belongs to repository {0}")]
    OtherRepository(RepositoryId),
    #[error("not the name of an object: {0:?}")]
    InvalidObject(String),
    #[error("not a name of a reference that may be changed: {0:?}")]
    InvalidReference(String),
    #[error("`{0}` exists already")]
    Exists(Utf8PathBuf),
    #[error("`{0}` is not a workspace, or the file next to it with its state is damaged: restore a snapshot")]
    NotAWorkspace(Utf8PathBuf),
    #[error(
        "the workspace has {bytes} bytes of new files, and the limit of a snapshot is {limit} bytes; the largest: {largest}; \
         remove them, list them in `.gitignore`, or raise the limit"
    )]
    TooLarge { bytes: u64, limit: u64, largest: String },
    #[error("the workspace has more than {0} files and folders: remove some, or list their folder in `.gitignore`")]
    TooManyFiles(usize),
    #[error("`{}` changed while it was read", .0.display())]
    Unstable(PathBuf),
    #[error("the workspace is not as in the snapshot after the restore: {0}")]
    NotRestored(String),
}

impl WorkspaceError {
    pub(crate) fn file(path: impl AsRef<Path>) -> impl FnOnce(std::io::Error) -> Self {
        move |source| WorkspaceError::File { path: path.as_ref().to_owned(), source }
    }
}

/// A bare repository of the store. It needs no other repository.
#[derive(Debug, Clone)]
pub struct StoredRepository {
    pub(crate) id: RepositoryId,
    pub(crate) path: Utf8PathBuf,
    pub(crate) options: GitOptions,
}

/// An entry of a tree: a file, a link or a submodule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeEntry {
    pub(crate) mode: String,
    pub(crate) object: String,
}

impl StoredRepository {
    pub fn id(&self) -> &RepositoryId {
        &self.id
    }

    /// The bare repository.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// Creates a command on the repository, without settings of the user.
    pub(crate) fn git(&self, arguments: &[&str]) -> Git {
        Git::new(&self.options, &self.path, arguments)
            .without_user_settings()
            .with("GIT_DIR", self.path.as_str())
            .with("GIT_LITERAL_PATHSPECS", "1")
    }

    /// Creates a commit. The same arguments give the same commit.
    pub fn commit(
        &self,
        tree: &str,
        parents: &[&str],
        message: &str,
        author: &Author,
        at: Timestamp,
    ) -> Result<String, WorkspaceError> {
        let mut arguments = vec!["commit-tree", object_name(tree)?, "-F", "-"];
        for parent in parents {
            arguments.extend(["-p", object_name(parent)?]);
        }
        let mut git = self.git(&arguments).with_input(message.as_bytes().to_vec());
        let date = format!("@{} +0000", at.as_second());
        for role in ["AUTHOR", "COMMITTER"] {
            git = git
                .with(&format!("GIT_{role}_NAME"), author.name.as_str())
                .with(&format!("GIT_{role}_EMAIL"), author.email.as_str())
                .with(&format!("GIT_{role}_DATE"), date.as_str());
        }
        Ok(git.text()?)
    }

    /// Returns the bytes of a file, or the target of a link. `None` if the commit or tree has no such file.
    pub fn file_at(&self, commit_or_tree: &str, path: &str) -> Result<Option<Vec<u8>>, WorkspaceError> {
        let listed = self.git(&["ls-tree", "-z", "--full-tree", object_name(commit_or_tree)?, "--", path]).output()?;
        let entry = parse_tree(&listed)?.into_iter().find(|(found, _)| found == path.as_bytes());
        match entry {
            Some((_, entry)) if !entry.is_submodule() && !entry.is_folder() => {
                Ok(Some(self.git(&["cat-file", "blob", &entry.object]).output()?))
            }
            _ => Ok(None),
        }
    }

    /// Creates or moves a reference below `refs/counterproof/`, so that `git gc` does not remove the commit.
    pub fn keep(&self, reference: &str, commit: &str) -> Result<(), WorkspaceError> {
        let reference = own_reference(reference)?;
        self.change_references(&["update-ref", "--no-deref", reference, object_name(commit)?])
    }

    /// Removes a reference below `refs/counterproof/`, or all references below a name that ends with a slash. A reference that does
    /// not exist is not an error.
    pub fn release(&self, reference: &str) -> Result<(), WorkspaceError> {
        let reference = own_reference(reference)?;
        if !reference.ends_with('/') {
            return self.change_references(&["update-ref", "--no-deref", "-d", reference]);
        }
        let listed = self.git(&["for-each-ref", "--format=delete %(refname)", reference]).output()?;
        let update = || self.git(&["update-ref", "--no-deref", "--stdin"]).with_input(listed.clone()).output();
        self.unlocking(update).map(drop)
    }

    fn change_references(&self, arguments: &[&str]) -> Result<(), WorkspaceError> {
        self.unlocking(|| self.git(arguments).output()).map(drop)
    }

    /// Runs a command that changes references. The lock of a killed process is removed: see [`StoredRepository::is_left`].
    pub(crate) fn unlocking<T>(&self, run: impl Fn() -> Result<T, GitError>) -> Result<T, WorkspaceError> {
        self.unlocking_within(crate::git::ATTEMPTS + 1, run)
    }

    pub(crate) fn unlocking_within<T>(
        &self,
        attempts: u32,
        run: impl Fn() -> Result<T, GitError>,
    ) -> Result<T, WorkspaceError> {
        let mut result = run();
        for _ in 0..attempts {
            let Err(GitError::Failed { message, .. }) = &result else { break };
            let Some(lock) = self.lock_in(message) else { break };
            if self.is_left(&lock) {
                let _ = std::fs::remove_file(lock);
            } else {
                std::thread::sleep(crate::git::PAUSE);
            }
            result = run();
        }
        Ok(result?)
    }

    /// True if a lock belongs to a process that was killed. Only one process writes a reference, and holds its lock for
    /// milliseconds: that of a session, or the one that has the lock of imports. The list of references has many writers, and a
    /// command may take all of its time.
    fn is_left(&self, lock: &Path) -> bool {
        let is_list = lock.file_name().is_some_and(|name| name == "packed-refs.lock");
        let limit = if is_list { self.options.timeout } else { crate::git::PAUSE * crate::git::ATTEMPTS };
        let modified = lock.symlink_metadata().and_then(|found| found.modified());
        modified.is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age >= limit))
    }

    /// Returns the lock file of this repository that a message is about: `Unable to create '….lock': File exists`.
    fn lock_in(&self, message: &str) -> Option<PathBuf> {
        if !message.contains("File exists") {
            return None;
        }
        let path = message.split('\'').map(Utf8Path::new).find(|path| path.extension() == Some("lock"))?;
        let path = path.strip_prefix(&self.path).unwrap_or(path);
        // Below the references, or the list of them: never a lock of another repository.
        (path.starts_with("refs") || path == "packed-refs.lock").then(|| self.path.join(path).into())
    }

    /// Returns a small file of the repository. One that is missing is empty.
    pub(crate) fn read_file(&self, name: &str) -> Vec<u8> {
        read_file::read(&self.path.join(name), read_file::MAX_SMALL_BYTES).unwrap_or_default()
    }

    /// Returns all files of a tree, in the order of git.
    pub(crate) fn tree(&self, tree: &str) -> Result<Vec<(Vec<u8>, TreeEntry)>, WorkspaceError> {
        parse_tree(&self.git(&["ls-tree", "-r", "-z", "--full-tree", object_name(tree)?]).output()?)
    }

    pub(crate) fn tree_of(&self, commit: &str) -> Result<String, WorkspaceError> {
        let name = format!("{}^{{tree}}", object_name(commit)?);
        Ok(self.git(&["rev-parse", "--verify", "--quiet", &name]).text()?)
    }
}

impl TreeEntry {
    pub(crate) fn is_submodule(&self) -> bool {
        self.mode == "160000"
    }

    fn is_folder(&self) -> bool {
        self.mode == "040000"
    }
}

/// Parses `mode type object<TAB>path` entries that end with a zero byte.
fn parse_tree(output: &[u8]) -> Result<Vec<(Vec<u8>, TreeEntry)>, WorkspaceError> {
    let invalid = || GitError::Output("ls-tree".to_owned());
    let mut entries = Vec::new();
    for line in output.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
        let tab = line.iter().position(|byte| *byte == b'\t').ok_or_else(invalid)?;
        let fields = std::str::from_utf8(&line[..tab]).map_err(|_| invalid())?;
        let mut fields = fields.split(' ');
        let (mode, object) = (fields.next().unwrap_or_default(), fields.nth(1).ok_or_else(invalid)?);
        entries.push((line[tab + 1..].to_vec(), TreeEntry { mode: mode.to_owned(), object: object.to_owned() }));
    }
    Ok(entries)
}

/// Checks that a text is the name of an object, so that git reads it neither as an option nor as an expression.
pub(crate) fn object_name(name: &str) -> Result<&str, WorkspaceError> {
    let is_valid = matches!(name.len(), 40 | 64) && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_valid { Ok(name) } else { Err(WorkspaceError::InvalidObject(name.to_owned())) }
}

/// Checks that a reference is one of ours. Git checks the rest of the name.
pub(crate) fn own_reference(name: &str) -> Result<&str, WorkspaceError> {
    let is_valid = name.strip_prefix(REFERENCES).is_some_and(|rest| !rest.is_empty())
        && !name.contains("..")
        && name.bytes().all(|byte| byte.is_ascii_graphic());
    if is_valid { Ok(name) } else { Err(WorkspaceError::InvalidReference(name.to_owned())) }
}

/// Creates a folder for an index, which the system cleans up if this process is killed.
pub(crate) fn temporary_folder() -> Result<tempfile::TempDir, WorkspaceError> {
    let folder = tempfile::Builder::new().prefix("counterproof-git-").tempdir();
    folder.map_err(WorkspaceError::file(std::env::temp_dir()))
}

/// A path of git in the form of messages and records.
pub(crate) fn display(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

/// The path of a workspace as an absolute path without a slash at its end: git runs in other folders.
pub(crate) fn absolute(folder: &Utf8Path) -> Result<Utf8PathBuf, WorkspaceError> {
    let path = camino::absolute_utf8(folder).map_err(WorkspaceError::file(folder))?;
    Ok(path.components().collect())
}

/// A path of git below a folder.
pub(crate) fn below(folder: &Utf8Path, path: &[u8]) -> PathBuf {
    folder.as_std_path().join(std::ffi::OsStr::from_bytes(path))
}
