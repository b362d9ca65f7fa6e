//! Executes a program with a command of a vector.
//!
//! The environment is that of the caller without the variables whose names begin with `SAFE_`, plus the variables of the run and
//! of the vector.

use std::collections::BTreeMap;
use std::env;
use std::process::{Command, Stdio};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::write::{Durability, create_folder, write};
use tempfile::TempDir;

use super::error::TrialError;
use super::process::{self, ProcessOptions};
use super::snapshot::{self, Snapshot};
use super::template::{self, READY_VARIABLE, TemplateFile};
use crate::subject::{Subject, SubjectKind};
use crate::vectors::{Group, Setup, VectorCommand};
use counterproof_safe_run::Cancellation;

/// The time limit of a program.
const TIME_LIMIT: Duration = Duration::from_mins(1);

/// Variables with this prefix change what safe-run does, so those of the caller are removed.
const REMOVED_PREFIX: &[u8] = b"SAFE_";

/// The log folder of a program if no variable sets it.
const DEFAULT_LOG_FOLDER: &str = ".agent/FAIL-LOGS";

/// What a program did in a trial.
#[derive(Debug)]
pub(crate) struct TrialOutcome {
    /// The exit code; `None` if a signal killed the program.
    pub(crate) exit_code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    /// The folder before the execution.
    pub(crate) before: Snapshot,
    /// The folder after the execution.
    pub(crate) after: Snapshot,
    /// The log folder, relative to the folder of the trial.
    pub(crate) log_folder: Utf8PathBuf,
}

/// A program, a command, and their environment.
pub(crate) struct Trial<'a> {
    pub(crate) subject: &'a Subject,
    /// The tool that a wrapper finds.
    pub(crate) tool: &'a Utf8Path,
    pub(crate) group: Group,
    pub(crate) setup: &'a Setup,
    pub(crate) command: &'a VectorCommand,
    pub(crate) environment: &'a BTreeMap<String, String>,
    pub(crate) cancellation: &'a Cancellation,
}

impl Trial<'_> {
    /// Executes the program. An error means that the trial failed, not the program.
    pub(crate) fn run(&self) -> Result<TrialOutcome, TrialError> {
        // Named, so that users can attribute a folder that a killed run has left.
        let folder = TempDir::with_prefix("conformance-").map_err(TrialError::TemporaryFolder)?;
        let folder = Utf8Path::from_path(folder.path()).ok_or(TrialError::NonUtf8Folder)?;
        // The ready file is outside the working folder, so it is not part of the snapshot.
        let (root, ready) = (folder.join("root"), folder.join("ready"));
        let (arguments, file) = template::expand(self.command)?;
        self.create_files(&root, file.as_ref())?;
        let before = snapshot::take(&root)?;
        let options = ProcessOptions {
            stdin: self.command.stdin.as_deref(),
            signal: self.command.interrupt_signal.map(|signal| (signal, ready.as_path())),
            time_limit: TIME_LIMIT,
            cancellation: self.cancellation,
        };
        let output = process::run(self.process_command(&root, &ready, &arguments), &options)?;
        let after = snapshot::take(&root)?;
        let (exit_code, log_folder) = (output.status.code(), self.log_folder());
        Ok(TrialOutcome { exit_code, stdout: output.stdout, stderr: output.stderr, before, after, log_folder })
    }

    fn create_files(&self, root: &Utf8Path, file: Option<&TemplateFile>) -> Result<(), TrialError> {
        create_folder(root)?;
        for path in &self.setup.create_files {
            create_file(&root.join(path), &format!("contents of {path}\n"))?;
        }
        if let Some(file) = file {
            create_file(&root.join(&file.path), "#!/bin/sh\nexit 0\n")?;
            set_mode(&root.join(&file.path), file.mode)?;
        }
        Ok(())
    }

    fn process_command(&self, root: &Utf8Path, ready: &Utf8Path, arguments: &[String]) -> Command {
        let mut command = self.subject.command(self.group, arguments);
        command.current_dir(root).env(READY_VARIABLE, ready).stdin(Stdio::null());
        for (name, _) in env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(REMOVED_PREFIX)) {
            command.env_remove(name);
        }
        if self.subject.kind == SubjectKind::Wrapper {
            command.env("SAFE_RUN_BIN", self.tool);
        }
        command.envs(self.environment).envs(&self.command.env);
        command
    }

    fn log_folder(&self) -> Utf8PathBuf {
        let variable = |variables: &BTreeMap<String, String>| variables.get("SAFE_LOG_DIR").cloned();
        let folder = variable(&self.command.env).or_else(|| variable(self.environment));
        folder.map_or_else(|| DEFAULT_LOG_FOLDER.into(), Into::into)
    }
}

fn create_file(path: &Utf8Path, text: &str) -> Result<(), TrialError> {
    create_folder(path.parent().unwrap_or(path))?;
    Ok(write(path, text.as_bytes(), Durability::Cached)?)
}

#[cfg(unix)]
fn set_mode(path: &Utf8Path, mode: u32) -> Result<(), TrialError> {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    let set = fs::set_permissions(path, fs::Permissions::from_mode(mode));
    set.map_err(|source| TrialError::Permissions { path: path.to_owned(), source })
}

#[cfg(not(unix))]
fn set_mode(_path: &Utf8Path, _mode: u32) -> Result<(), TrialError> {
    Ok(())
}
