//! Runs the `git` program.

use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use camino::Utf8Path;

use super::GitError;

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

/// A git command for a folder.
#[derive(Debug)]
pub(super) struct Git {
    command: Command,
    text: String,
    /// What the command reads from standard input.
    input: Option<Vec<u8>>,
}

impl Git {
    pub(super) fn new(folder: &Utf8Path, arguments: &[&str]) -> Self {
        let mut command = Command::new("git");
        command.arg("-C").arg(folder);
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        command.args(arguments).stdin(Stdio::null());
        for name in REMOVED {
            command.env_remove(name);
        }
        command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_PAGER", "cat").env("LC_ALL", "C");
        Self { command, text: arguments.join(" "), input: None }
    }

    /// Uses another index file.
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

    /// Runs the command. Returns its standard output.
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

    /// Runs the command. Returns its standard output as text without the newline at its end.
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

    /// Runs the command. Returns the paths that it prints, each ended by a NUL.
    pub(super) fn paths(self) -> Result<Vec<String>, GitError> {
        split(&self.output()?)
    }
}

/// Splits output at its NULs.
pub(super) fn split(output: &[u8]) -> Result<Vec<String>, GitError> {
    let parts = output.split(|byte| *byte == 0).filter(|part| !part.is_empty());
    let text = |part: &[u8]| {
        String::from_utf8(part.to_vec())
            .map_err(|error| GitError::PathNotUtf8(String::from_utf8_lossy(error.as_bytes()).into_owned()))
    };
    parts.map(text).collect()
}
