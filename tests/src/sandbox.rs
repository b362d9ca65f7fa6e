//! A temporary folder in which a test runs the program.

use std::ffi::OsStr;
use std::fmt;
use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::write::{Durability, write};
use tempfile::TempDir;
use walkdir::WalkDir;

use crate::program;

/// A script for `sh -c` that runs `unshare` with its arguments. Where `unshare` is missing, the shell reports it, and a test can be
/// skipped.
pub const UNSHARE: &str = "exec unshare \"$@\"";

/// The temporary folder of one test.
#[derive(Debug)]
pub struct Sandbox {
    folder: Folder,
    variables: Vec<(String, String)>,
}

#[derive(Debug)]
enum Folder {
    /// Removed with the sandbox.
    Temporary(TempDir),
    /// Somebody else's.
    Given(Utf8PathBuf),
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::new()
    }
}

impl Sandbox {
    /// Creates an empty folder.
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("counterproof-sandbox-").tempdir().expect("a scratch folder");
        Self { folder: Folder::Temporary(folder), variables: Vec::new() }
    }

    /// Uses an existing folder, which remains.
    pub fn within(folder: &Utf8Path) -> Self {
        Self { folder: Folder::Given(folder.to_owned()), variables: Vec::new() }
    }

    /// Keeps the folder for a person to look at, and returns its path.
    pub fn keep(self) -> Utf8PathBuf {
        match self.folder {
            Folder::Temporary(folder) => {
                Utf8PathBuf::from_path_buf(folder.keep()).expect("scratch folders have plain names")
            }
            Folder::Given(folder) => folder,
        }
    }

    /// Writes a file into the folder.
    #[must_use]
    pub fn with_file(self, name: &str, contents: &str) -> Self {
        let path = self.path(name);
        counterproof_store::write::create_folder(path.parent().expect("the sandbox")).expect("a folder");
        write(&path, contents.as_bytes(), Durability::Cached).expect("a file");
        self
    }

    /// Copies the checked-in sample runs into a folder of the sandbox.
    #[must_use]
    pub fn with_sample_runs(mut self, folder: &str) -> Self {
        let checked_in = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../sample-runs");
        for (path, bytes) in files_below(&checked_in) {
            let name = Utf8Path::new(folder).join(path);
            self = self.with_file(name.as_str(), &String::from_utf8(bytes).expect("a text"));
        }
        self
    }

    /// Sets an environment variable for the program.
    #[must_use]
    pub fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Returns the path of the folder.
    pub fn root(&self) -> &Utf8Path {
        match &self.folder {
            Folder::Temporary(folder) => Utf8Path::from_path(folder.path()).expect("scratch folders have plain names"),
            Folder::Given(folder) => folder,
        }
    }

    /// Returns a path in the folder.
    pub fn path(&self, name: &str) -> Utf8PathBuf {
        self.root().join(name)
    }

    /// Reads a file as JSON.
    #[track_caller]
    pub fn json(&self, name: &str) -> serde_json::Value {
        let path = self.path(name);
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Returns the command for the program with these arguments, in the folder and with a minimal environment.
    pub fn command(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new(program());
        command.args(arguments).current_dir(self.root()).stdin(Stdio::null());
        for name in [
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "ALL_PROXY",
            "http_proxy",
            "https_proxy",
            "all_proxy",
            "NO_COLOR",
            "GITHUB_STEP_SUMMARY",
        ] {
            command.env_remove(name);
        }
        // A git checkout around the temporary folder must not change the results.
        command.env("GIT_CEILING_DIRECTORIES", self.root().parent().expect("a scratch folder has a parent"));
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Returns the command for the program through a wrapper, such as `env` or `sh`, that runs its arguments.
    pub fn command_in(&self, wrapper: &[&str], arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let program = self.command(arguments);
        let mut command = Command::new(wrapper[0]);
        command.args(&wrapper[1..]).arg(program.get_program()).args(program.get_args());
        command.current_dir(self.root()).stdin(Stdio::null());
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }

    /// Runs the program through a wrapper.
    pub fn run_in(&self, wrapper: &[&str], arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Finished {
        finished(&mut self.command_in(wrapper, arguments))
    }

    /// Runs the program in the folder and waits for it.
    pub fn run(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Finished {
        finished(&mut self.command(arguments))
    }
}

fn finished(command: &mut Command) -> Finished {
    let output = command.output().expect("the program starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the program prints UTF-8");
    let stdout = without_durations(&text(output.stdout));
    Finished { code: output.status.code(), stdout, stderr: text(output.stderr) }
}

/// Replaces the measured durations of the line about time and cost, which differ between runs.
fn without_durations(output: &str) -> String {
    let line = |line: &str| match line.strip_prefix("per case: duration ").and_then(|rest| rest.split_once(", steps")) {
        Some((_, rest)) => format!("per case: duration [time], steps{rest}"),
        None => line.to_owned(),
    };
    output.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// The output and the exit code of a program. Its `Display` form is used in snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The exit code, or `None` if a signal ended the program.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Finished {
    /// Replaces a text that differs between runs.
    #[must_use]
    pub fn redact(mut self, text: &str, by: &str) -> Self {
        self.stdout = self.stdout.replace(text, by);
        self.stderr = self.stderr.replace(text, by);
        self
    }
}

impl fmt::Display for Finished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.code.map_or_else(|| "none".to_owned(), |code| code.to_string());
        write!(f, "exit code: {code}")?;
        for (name, text) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !text.is_empty() {
                write!(f, "\n--- {name}\n{}", text.trim_end())?;
            }
        }
        Ok(())
    }
}

/// Returns all files below a folder with their bytes, sorted by relative path.
pub fn files_below(folder: &Utf8Path) -> Vec<(Utf8PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in WalkDir::new(folder).sort_by_file_name() {
        let entry = entry.expect("the folder can be read");
        if entry.file_type().is_file() {
            let path = Utf8Path::from_path(entry.path()).expect("our files have plain names");
            let relative = path.strip_prefix(folder).expect("it lies below").to_owned();
            files.push((relative, std::fs::read(path).expect("the file can be read")));
        }
    }
    files
}
