//! A repository: its folder and what is checked out.

use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

const OPERATIONS: [(&str, &str); 6] = [
    ("MERGE_HEAD", "a merge"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("BISECT_LOG", "a bisection"),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Repository {
    pub(super) root: Utf8PathBuf,
    /// The working directory relative to `root`, with a slash at its end; empty for `root` itself.
    pub(super) prefix: String,
}

impl Repository {
    pub(super) fn of(folder: &Utf8Path) -> Result<Option<Self>, GitError> {
        match Git::new(folder, &["rev-parse", "--show-toplevel", "--show-prefix"]).output() {
            Ok(output) => {
                let text = String::from_utf8(output).map_err(|_| GitError::Output("rev-parse".to_owned()))?;
                let mut lines = text.split('\n');
                let root = lines.next().unwrap_or_default().into();
                Ok(Some(Self { root, prefix: lines.next().unwrap_or_default().to_owned() }))
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

    pub(super) fn git(&self, arguments: &[&str]) -> Git {
        Git::new(&self.root, arguments)
    }

    /// Returns the commit that is checked out. `None` in a repository without commits.
    pub(super) fn head(&self) -> Result<Option<String>, GitError> {
        // `^{commit}` fails for a HEAD that names nothing, which a new repository has.
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

    pub(super) fn operation(&self) -> Result<Option<&'static str>, GitError> {
        for (name, operation) in OPERATIONS {
            // git knows the place: a worktree has these files in another folder.
            let path = self.git(&["rev-parse", "--git-path", name]).text()?;
            // The path is relative to the folder of the command unless it is absolute.
            if self.root.join(path).exists() {
                return Ok(Some(operation));
            }
        }
        Ok(None)
    }

    pub(super) fn is_sparse(&self) -> Result<bool, GitError> {
        let value = self.git(&["config", "--bool", "--default", "false", "--get", "core.sparseCheckout"]).text()?;
        Ok(value == "true")
    }
}

/// Variables that would make git work on another repository, or behave in another way.
const REMOVED: [&str; 9] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_OBJECT_DIRECTORY",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_EXTERNAL_DIFF",
    "GIT_LITERAL_PATHSPECS",
];

/// Settings that keep programs of the repository from running, and the output as it is documented.
const SETTINGS: [&str; 5] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.quotePath=false",
    "status.relativePaths=false",
    "commit.gpgSign=false",
];

/// How often a command is tried while another git process holds the lock of the index, and the pause between.
const ATTEMPTS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(200);

/// Longest quoted standard error, in characters.
const MAX_MESSAGE_CHARS: usize = 400;

#[derive(Debug)]
pub(super) struct Git {
    command: Command,
    text: String,
    input: Option<Vec<u8>>,
}

impl Git {
    pub(super) fn new(folder: &Utf8Path, arguments: &[&str]) -> Self {
        let mut command = Command::new("git");
        // Not the working directory of this process, which threads share.
        command.arg("-C").arg(folder);
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        command.args(arguments).stdin(Stdio::null());
        for name in REMOVED {
            command.env_remove(name);
        }
        // Nothing may wait for a person, page its output or translate its messages.
        command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_PAGER", "cat").env("LC_ALL", "C");
        Self { command, text: arguments.join(" "), input: None }
    }

    pub(super) fn with_index(mut self, index: &Path) -> Self {
        self.command.env("GIT_INDEX_FILE", index);
        self
    }

    /// Sets the author and the committer of commits. People find them next to their own commits.
    pub(super) fn with_author(mut self) -> Self {
        for role in ["AUTHOR", "COMMITTER"] {
            self.command.env(format!("GIT_{role}_NAME"), "Counterproof");
            self.command.env(format!("GIT_{role}_EMAIL"), "counterproof@localhost");
        }
        self
    }

    /// Takes paths as they are, without patterns.
    pub(super) fn literal(mut self) -> Self {
        self.command.env("GIT_LITERAL_PATHSPECS", "1");
        self
    }

    /// Passes paths on standard input, each ended by a NUL. The command must have the options for that.
    pub(super) fn with_paths(mut self, paths: &[String]) -> Self {
        let input = paths.iter().flat_map(|path| path.bytes().chain([0])).collect();
        self.input = Some(input);
        self
    }

    fn run(&mut self) -> Result<Output, GitError> {
        let Some(input) = &self.input else { return self.command.output().map_err(GitError::Start) };
        // A file and not a pipe: a pipe would have to be written while the output is read.
        let mut file = tempfile::tempfile().map_err(GitError::Start)?;
        file.write_all(input).and_then(|()| file.rewind()).map_err(GitError::Start)?;
        self.command.stdin(file).output().map_err(GitError::Start)
    }

    pub(super) fn output(mut self) -> Result<Vec<u8>, GitError> {
        let mut attempt = 1;
        loop {
            let output = self.run()?;
            if output.status.success() {
                return Ok(output.stdout);
            }
            let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            // A git process of an execution that was killed may still run.
            if message.contains("index.lock") && attempt < ATTEMPTS {
                attempt += 1;
                sleep(PAUSE);
                continue;
            }
            let message = message.chars().take(MAX_MESSAGE_CHARS).collect();
            return Err(GitError::Failed { command: self.text, message });
        }
    }

    pub(super) fn text(self) -> Result<String, GitError> {
        let text = self.text.clone();
        let output = String::from_utf8(self.output()?).map_err(|_| GitError::Output(text))?;
        Ok(output.trim_end_matches('\n').to_owned())
    }

    /// Runs the command. Returns true for exit code 0 and false for 1, which some commands use as an answer.
    pub(super) fn answer(mut self) -> Result<bool, GitError> {
        let output = self.command.output().map_err(GitError::Start)?;
        match output.status.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => {
                let message = String::from_utf8_lossy(&output.stderr).trim().chars().take(MAX_MESSAGE_CHARS).collect();
                Err(GitError::Failed { command: self.text, message })
            }
        }
    }

    pub(super) fn paths(self) -> Result<Vec<String>, GitError> {
        split(&self.output()?)
    }
}

pub(super) fn split(output: &[u8]) -> Result<Vec<String>, GitError> {
    let parts = output.split(|byte| *byte == 0).filter(|part| !part.is_empty());
    let text = |part: &[u8]| {
        String::from_utf8(part.to_vec())
            .map_err(|error| GitError::PathNotUtf8(String::from_utf8_lossy(error.as_bytes()).into_owned()))
    };
    parts.map(text).collect()
}

#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("cannot start `git`")]
    Start(#[source] std::io::Error),
    #[error("`git {command}` failed: {message}")]
    Failed { command: String, message: String },
    #[error("a path in the repository is not UTF-8: {0:?}")]
    PathNotUtf8(String),
    #[error("cannot change `{path}`")]
    File { path: Utf8PathBuf, source: std::io::Error },
    #[error("unexpected output of `git {0}`")]
    Output(String),
}

/// The paths of a work tree that are not as they are in the checked out commit. Paths are relative to the repository.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Status {
    pub(super) changed: Vec<String>,
    /// Files that are neither tracked nor ignored. A nested repository ends with a slash.
    pub(super) untracked: Vec<String>,
    pub(super) submodules: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Changes {
    /// Files that differ, new ones included.
    pub files: u64,
    /// Added lines. The lines of untracked and binary files are not counted.
    pub insertions: u64,
    pub deletions: u64,
}

impl Status {
    /// Reads the status: `git status --porcelain=v2`, whose format is stable.
    pub(super) fn read(repository: &Repository) -> Result<Self, GitError> {
        let arguments =
            ["status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignore-submodules=none", "--no-renames"];
        let mut status = Self::default();
        for entry in split(&repository.git(&arguments).output()?)? {
            let (kind, rest) = entry.split_once(' ').ok_or_else(|| GitError::Output("status".to_owned()))?;
            match kind {
                "?" => status.untracked.push(rest.to_owned()),
                // `1 XY sub mH mI mW hH hI path`, and `u XY sub m1 m2 m3 mW h1 h2 h3 path` for conflicts.
                "1" | "u" => {
                    let fields = if kind == "1" { 8 } else { 10 };
                    // The path comes last and may contain spaces.
                    let mut fields = rest.splitn(fields, ' ');
                    let submodule = fields.nth(1).unwrap_or_default().starts_with('S');
                    let path = fields.last().unwrap_or_default().to_owned();
                    let list = if submodule { &mut status.submodules } else { &mut status.changed };
                    list.push(path);
                }
                _ => {}
            }
        }
        Ok(status)
    }
}

impl Changes {
    /// Counts the differences between a commit and the work tree. `untracked` has the new files that are not tracked.
    pub(super) fn count(repository: &Repository, commit: &str, untracked: usize) -> Result<Self, GitError> {
        let output =
            repository.git(&["diff", "--numstat", "-z", "--no-renames", "--no-ext-diff", commit, "--"]).output()?;
        let mut changes = Self { files: untracked as u64, ..Self::default() };
        for line in split(&output)? {
            // A binary file has `-` for both numbers.
            let mut fields = line.split('\t');
            let mut number = || fields.next().and_then(|it| it.parse::<u64>().ok()).unwrap_or_default();
            changes.insertions += number();
            changes.deletions += number();
            changes.files += 1;
        }
        Ok(changes)
    }
}
