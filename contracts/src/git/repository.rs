//! The repository of the user: its folders, what is checked out, and its references.

use std::io;
use std::os::unix::fs::FileTypeExt as _;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::read_file;
use serde::{Deserialize, Serialize};

use counterproof_workspace::git::{Git, GitError, GitOptions, split};

const OPERATIONS: [(&str, &str); 6] = [
    ("MERGE_HEAD", "a merge"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("BISECT_LOG", "a bisection"),
];

/// Maximum size of the file that names the common folder, in bytes.
const MAX_PATH_BYTES: u64 = 64 << 10;

/// The folders of a repository, as absolute paths without links.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Repository {
    /// The top folder of the work tree.
    pub(super) root: Utf8PathBuf,
    /// The folder with `HEAD` and the index.
    pub(super) git_folder: Utf8PathBuf,
    /// The folder with the settings, the references and the objects, which linked work trees share.
    pub(super) common_folder: Utf8PathBuf,
}

impl Repository {
    /// Finds the repository of a folder, and the path of the folder in it, with the settings of the user: only before the work begins.
    pub(super) fn find(folder: &Utf8Path, options: &GitOptions) -> Result<Option<(Self, String)>, GitError> {
        let arguments = [
            "rev-parse",
            "--path-format=absolute",
            "--show-toplevel",
            "--absolute-git-dir",
            "--git-common-dir",
            "--show-prefix",
        ];
        match Git::new(options, folder, &arguments).text() {
            Ok(text) => {
                let mut lines = text.split('\n');
                let mut folder = || {
                    let path = Utf8Path::new(lines.next().unwrap_or_default());
                    path.canonicalize_utf8().map_err(GitError::file(path))
                };
                let repository = Self { root: folder()?, git_folder: folder()?, common_folder: folder()? };
                // Empty for the top folder.
                Ok(Some((repository, lines.next().unwrap_or_default().to_owned())))
            }
            Err(GitError::Failed { message, .. })
                // git exits with 128 for all failures. The message is stable because `LC_ALL` is C.
                if message.contains("not a git repository") || message.contains("must be run in a work tree") =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn exists(&self) -> bool {
        self.git_folder.join("HEAD").exists() && self.root.is_dir()
    }

    /// True unless a folder is that of another repository by now: a link, below one, or named by the file `commondir`.
    pub(super) fn is_in_place(&self) -> bool {
        // The folders were recorded without links.
        let is_same = |folder: &Utf8PathBuf| folder.canonicalize_utf8().is_ok_and(|now| now == *folder);
        let common = match read_file::read_text(&self.git_folder.join("commondir"), MAX_PATH_BYTES) {
            Ok(path) => self.git_folder.join(path.trim_end_matches('\n')).canonicalize_utf8().ok(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Some(self.git_folder.clone()),
            Err(_) => None,
        };
        [&self.root, &self.git_folder, &self.common_folder].into_iter().all(is_same)
            && common.as_ref() == Some(&self.common_folder)
    }

    /// Fails if a pipe or a device is in the place of a file of the repository: git would wait for its other end. Opening a socket,
    /// such as that of git's monitor of files, fails at once.
    pub(super) fn check_files(&self) -> Result<(), GitError> {
        let mut folders = vec![self.git_folder.clone(), self.common_folder.clone()];
        while let Some(folder) = folders.pop() {
            let Ok(entries) = folder.read_dir_utf8() else { continue };
            for entry in entries {
                let entry = entry.map_err(GitError::file(&folder))?;
                let path = entry.path();
                // The kind of what a link leads to, as for git. A link to nothing is a missing file.
                let Ok(kind) = path.metadata().map(|metadata| metadata.file_type()) else { continue };
                let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
                // Folders of single objects have two digits, and each object is read under its own name.
                let holds_objects = entry.file_name().len() == 2 && folder.ends_with("objects");
                if kind.is_dir() && !is_link && !holds_objects {
                    folders.push(path.to_owned());
                } else if kind.is_fifo() || kind.is_char_device() || kind.is_block_device() {
                    return Err(GitError::file(path)(io::Error::other("it is not a regular file")));
                }
            }
        }
        Ok(())
    }

    pub(super) fn objects(&self) -> Utf8PathBuf {
        self.common_folder.join("objects")
    }

    /// Creates a command with all settings of the user, for the time before the work begins.
    pub(super) fn git(&self, options: &GitOptions, arguments: &[&str]) -> Git {
        Git::new(options, &self.root, arguments)
    }

    /// Creates a command that reads or changes references. The work may have changed the settings, and these commands run no
    /// program that a setting names.
    pub(super) fn references(&self, options: &GitOptions, arguments: &[&str]) -> Git {
        Git::new(options, &self.root, arguments)
            .without_user_settings()
            .with("GIT_DIR", self.git_folder.as_str())
            .with("GIT_WORK_TREE", self.root.as_str())
    }

    /// Returns the commit that is checked out. `None` in a repository without commits.
    pub(super) fn head(&self, options: &GitOptions) -> Result<Option<String>, GitError> {
        match self.references(options, &["rev-parse", "--verify", "--quiet", "HEAD"]).answer()? {
            Some(output) => Ok(split(&output)?.first().map(|commit| commit.trim_end().to_owned())),
            None => Ok(None),
        }
    }

    /// Returns the full name of the branch that is checked out. `None` for a detached HEAD.
    pub(super) fn branch(&self, options: &GitOptions) -> Result<Option<String>, GitError> {
        match self.references(options, &["symbolic-ref", "--quiet", "HEAD"]).answer()? {
            Some(output) => Ok(split(&output)?.first().map(|name| name.trim_end().to_owned())),
            None => Ok(None),
        }
    }

    pub(super) fn operation(&self) -> Option<&'static str> {
        let exists = |name: &str| self.git_folder.join(name).symlink_metadata().is_ok();
        OPERATIONS.iter().find(|(name, _)| exists(name)).map(|(_, operation)| *operation)
    }

    pub(super) fn is_sparse(&self, options: &GitOptions) -> Result<bool, GitError> {
        let arguments = ["config", "--bool", "--default", "false", "--get", "core.sparseCheckout"];
        Ok(self.git(options, &arguments).text()? == "true")
    }
}

/// The paths of a work tree that are not as they are in the checked out commit. Paths are relative to the repository.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Status {
    pub(super) changed: Vec<String>,
    /// Files that are neither tracked nor ignored. A nested repository ends with a slash.
    pub(super) untracked: Vec<String>,
}

impl Status {
    /// Reads the status: `git status --porcelain=v2`, whose format is stable. A changed submodule counts as a change.
    pub(super) fn read(repository: &Repository, options: &GitOptions) -> Result<Self, GitError> {
        let arguments =
            ["status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignore-submodules=none", "--no-renames"];
        let mut status = Self::default();
        for entry in split(&repository.git(options, &arguments).output()?)? {
            let (kind, rest) = entry.split_once(' ').ok_or_else(|| GitError::Output("status".to_owned()))?;
            match kind {
                "?" => status.untracked.push(rest.to_owned()),
                // `1 XY sub mH mI mW hH hI path`, and `u XY sub m1 m2 m3 mW h1 h2 h3 path` for conflicts.
                "1" | "u" => {
                    let fields = if kind == "1" { 8 } else { 10 };
                    // The path comes last and may contain spaces.
                    status.changed.extend(rest.splitn(fields, ' ').last().map(str::to_owned));
                }
                _ => {}
            }
        }
        Ok(status)
    }
}
