//! Runs the `git` program under safe-run, with a time limit: no command waits forever or leaves a process. Hooks, monitors and
//! signatures are off; what a repository sets is otherwise the matter of the caller.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek as _};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_safe_run::{Cancellation, Command, Input, Options, StartError, Stream};

/// Time limit of a command, unless a caller sets another one.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(10);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitOptions {
    /// The program that supervises `git`: see [`Options::supervisor`].
    pub supervisor: Option<PathBuf>,
    /// The time limit of each git command.
    pub timeout: Duration,
}

impl Default for GitOptions {
    fn default() -> Self {
        Self { supervisor: None, timeout: DEFAULT_TIMEOUT }
    }
}

/// Settings that keep programs of the repository from running, and the output as it is documented.
const SETTINGS: [&str; 5] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.quotePath=false",
    "status.relativePaths=false",
    "commit.gpgSign=false",
];

/// Variables of git that name the settings of the user. All others would make git work on another repository, or in another way.
const KEPT: [&str; 2] = ["GIT_CONFIG", "GIT_EXEC_PATH"];

/// Variables of git that connections of the user need, such as the command of `ssh` and certificates.
const CONNECTION: [&str; 6] =
    ["GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_ASKPASS", "GIT_SSL_", "GIT_HTTP_PROXY_AUTHMETHOD"];

/// How often a command is tried while another git process holds the lock of the index, and the pause between.
pub const ATTEMPTS: u32 = 25;
pub const PAUSE: Duration = Duration::from_millis(200);

/// Longest quoted standard error, in characters.
const MAX_MESSAGE_CHARS: usize = 400;

/// Maximum bytes that a command may print.
const MAX_OUTPUT_BYTES: u64 = 1 << 30;

#[derive(Debug)]
pub struct Git {
    words: Vec<OsString>,
    environment: BTreeMap<OsString, Option<OsString>>,
    input: Vec<u8>,
    /// Replaces `input`.
    file: Option<File>,
    text: String,
    options: GitOptions,
    cancel: Cancellation,
}

impl Git {
    /// Creates a command in a folder, with the settings of the user.
    pub fn new(options: &GitOptions, folder: &Utf8Path, arguments: &[&str]) -> Self {
        // Not the working directory of this process, which threads share.
        let mut words: Vec<OsString> = ["git", "-C", folder.as_str()].map(OsString::from).into();
        words.extend(SETTINGS.iter().flat_map(|setting| ["-c".into(), OsString::from(setting)]));
        words.extend(arguments.iter().map(OsString::from));
        let is_removed = |name: &OsString| {
            let name = name.to_string_lossy();
            name.starts_with("GIT_") && !KEPT.iter().any(|kept| name.starts_with(kept))
        };
        let removed = std::env::vars_os().map(|(name, _)| name).filter(is_removed).map(|name| (name, None));
        let git = Self {
            words,
            environment: removed.collect(),
            input: Vec::new(),
            file: None,
            text: arguments.join(" "),
            options: options.clone(),
            cancel: Cancellation::default(),
        };
        // Nothing may wait for a person, page its output, translate its messages, or fetch a missing object.
        git.with("GIT_TERMINAL_PROMPT", "0")
            .with("GIT_PAGER", "cat")
            .with("LC_ALL", "C")
            .with("GIT_OPTIONAL_LOCKS", "0")
            .with("GIT_NO_REPLACE_OBJECTS", "1")
            .with("GIT_NO_LAZY_FETCH", "1")
            .with("GIT_ALLOW_PROTOCOL", "")
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.insert(name.into(), Some(value.into()));
        self
    }

    /// Ignores the settings of the user and of the machine: the work could have changed them.
    #[must_use]
    pub fn without_user_settings(mut self) -> Self {
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_CONFIG")) {
            self.environment.insert(name, None);
        }
        self.with("GIT_CONFIG_GLOBAL", "/dev/null").with("GIT_CONFIG_NOSYSTEM", "1").with("GIT_ATTR_NOSYSTEM", "1")
    }

    /// Allows connections with these protocols, separated by colons, and the variables of the user for them.
    #[must_use]
    pub fn with_protocols(mut self, protocols: &str) -> Self {
        self.environment.retain(|name, value| {
            let name = name.to_string_lossy();
            value.is_some() || !CONNECTION.iter().any(|kept| name.starts_with(kept))
        });
        self.with("GIT_ALLOW_PROTOCOL", protocols)
    }

    /// Makes a cancellation end the command with all of its processes. Others run to their end: a run that is cancelled still stores
    /// its files.
    #[must_use]
    pub fn cancelled_by(mut self, cancel: &Cancellation) -> Self {
        self.cancel = cancel.clone();
        self
    }

    /// Sets the standard input to a file, which is read from its start.
    #[must_use]
    pub fn with_input_file(mut self, file: File) -> Self {
        self.file = Some(file);
        self
    }

    #[must_use]
    pub fn with_input(mut self, input: Vec<u8>) -> Self {
        self.input = input;
        self
    }

    /// Sets the author and the committer of commits. People find them next to their own commits.
    #[must_use]
    pub fn with_author(mut self) -> Self {
        for role in ["AUTHOR", "COMMITTER"] {
            self = self
                .with(&format!("GIT_{role}_NAME"), "Counterproof")
                .with(&format!("GIT_{role}_EMAIL"), "counterproof@localhost");
        }
        self
    }

    fn input(&self) -> io::Result<Input> {
        match &self.file {
            Some(file) => {
                let mut file = file.try_clone()?;
                file.rewind()?;
                Ok(Input::Descriptor(file.into()))
            }
            None => Input::bytes(&self.input),
        }
    }

    /// Runs the command once. Returns its exit code, its output, and the start of its standard error.
    fn run(&self) -> Result<(i32, Vec<u8>, String), GitError> {
        let command = Command {
            options: Options {
                supervisor: self.options.supervisor.clone(),
                environment: self.environment.clone(),
                ..Options::default()
            },
            // A file and not a pipe: a pipe would have to be written while the output is read.
            input: self.input().map_err(GitError::Io)?,
            timeout: Some(self.options.timeout),
            output_limit: Some(MAX_OUTPUT_BYTES),
            cancel: self.cancel.clone(),
            ..Command::new(self.words.clone())
        };
        let mut record = command.run(&mut |_, _, _| {}).map_err(|error| GitError::Start(Box::new(error)))?;
        if let Some(error) = record.capture_error.take() {
            return Err(GitError::Io(error));
        }
        if let Some(reason) = record.stopped {
            return Err(GitError::Failed { command: self.text.clone(), message: reason.to_string() });
        }
        let head = |stream, limit| record.head(stream, limit).map(|head| head.bytes).map_err(GitError::Io);
        let message = String::from_utf8_lossy(&head(Stream::Stderr, MAX_MESSAGE_CHARS as u64 * 4)?).trim().to_owned();
        Ok((record.ending.exit_code(), head(Stream::Stdout, MAX_OUTPUT_BYTES)?, message))
    }

    fn failed(self, message: &str) -> GitError {
        GitError::Failed { command: self.text, message: message.chars().take(MAX_MESSAGE_CHARS).collect() }
    }

    pub fn output(self) -> Result<Vec<u8>, GitError> {
        let mut attempt = 1;
        loop {
            let (code, output, message) = self.run()?;
            if code == 0 {
                return Ok(output);
            }
            // A git process of a person may hold it for a moment.
            if message.contains("index.lock") && attempt < ATTEMPTS {
                attempt += 1;
                sleep(PAUSE);
                continue;
            }
            return Err(self.failed(&message));
        }
    }

    pub fn text(self) -> Result<String, GitError> {
        let text = self.text.clone();
        let output = String::from_utf8(self.output()?).map_err(|_| GitError::Output(text))?;
        Ok(output.trim_end_matches('\n').to_owned())
    }

    /// Runs the command. Returns its output for exit code 0, and `None` for 1, which some commands use as an answer.
    pub fn answer(self) -> Result<Option<Vec<u8>>, GitError> {
        match self.run()? {
            (0, output, _) => Ok(Some(output)),
            (1, _, _) => Ok(None),
            (_, _, message) => Err(self.failed(&message)),
        }
    }

    pub fn paths(self) -> Result<Vec<String>, GitError> {
        split(&self.output()?)
    }
}

pub fn split(output: &[u8]) -> Result<Vec<String>, GitError> {
    let parts = output.split(|byte| *byte == 0).filter(|part| !part.is_empty());
    parts.map(|part| utf8(part.to_vec())).collect()
}

pub fn utf8(path: Vec<u8>) -> Result<String, GitError> {
    String::from_utf8(path)
        .map_err(|error| GitError::PathNotUtf8(String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("cannot start `git`")]
    Start(#[source] Box<StartError>),
    #[error("cannot read or store data of `git`")]
    Io(#[source] std::io::Error),
    #[error("`git {command}` failed: {message}")]
    Failed { command: String, message: String },
    #[error("a path in the repository is not UTF-8: {0:?}")]
    PathNotUtf8(String),
    #[error("cannot read or change `{path}`")]
    File { path: Utf8PathBuf, source: std::io::Error },
    #[error("unexpected output of `git {0}`")]
    Output(String),
    #[error("the record of the start is not in the repository, or was changed")]
    NoManifest,
    #[error("the files are not as they were at the start: {0}")]
    NotRestored(String),
}

impl GitError {
    pub fn file(path: &Utf8Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| GitError::File { path: path.to_owned(), source }
    }
}
