//! Executes a program with a command of a vector. Commands that vectors name instead of writing them out are expanded here; their
//! scripts are for a POSIX shell.
//!
//! The environment is that of the caller without the variables whose names begin with `SAFE_`, plus the variables of the run and
//! of the vector.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, io};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_safe_run::Cancellation;
use counterproof_store::write::{Durability, WriteError, create_folder, write};
use tempfile::TempDir;

use super::process::{self, ProcessOptions};
use super::snapshot::{self, Snapshot};
use crate::subject::{Subject, SubjectKind};
use crate::vectors::{Group, Setup, VectorCommand};

const TIME_LIMIT: Duration = Duration::from_mins(1);

/// Variables with this prefix change what safe-run does, so those of the caller are removed.
const REMOVED_PREFIX: &[u8] = b"SAFE_";

/// The log folder of a program if no variable sets it.
const DEFAULT_LOG_FOLDER: &str = ".agent/FAIL-LOGS";

#[derive(Debug)]
pub(crate) struct TrialOutcome {
    /// The exit code; `None` if a signal killed the program.
    pub(crate) exit_code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) before: Snapshot,
    pub(crate) after: Snapshot,
    /// The log folder, relative to the folder of the trial.
    pub(crate) log_folder: Utf8PathBuf,
}

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
        let (arguments, file) = expand(self.command)?;
        self.create_files(&root, file.as_ref())?;
        // After the files of the setup, which are not artifacts of the program.
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
        // A setting of the caller would change logs and make the vectors fail on this machine only.
        for (name, _) in env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(REMOVED_PREFIX)) {
            command.env_remove(name);
        }
        if self.subject.kind == SubjectKind::Wrapper {
            command.env("SAFE_RUN_BIN", self.tool);
        }
        // The variables of the vector come last, because it is about them.
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

/// The variable with the path of the file that a command creates when it is ready for a signal.
pub(super) const READY_VARIABLE: &str = "CONFORMANCE_READY";

/// A script that a template requires in the folder of the trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TemplateFile {
    pub(super) path: String,
    /// The permission bits.
    pub(super) mode: u32,
}

/// Returns the arguments of a command and the file that it needs.
pub(super) fn expand(command: &VectorCommand) -> Result<(Vec<String>, Option<TemplateFile>), TemplateError> {
    match (&command.args, command.args_template.as_deref()) {
        (Some(args), None) => Ok((args.clone(), None)),
        (None, Some(template)) => expand_template(template, command),
        (None, None) => Err(TemplateError::NoArguments),
        (Some(_), Some(_)) => Err(TemplateError::AmbiguousArguments),
    }
}

fn expand_template(
    template: &str,
    command: &VectorCommand,
) -> Result<(Vec<String>, Option<TemplateFile>), TemplateError> {
    let script = |script: String| Ok((vec!["sh".to_owned(), "-c".to_owned(), script], None));
    let code = command.exit_code.unwrap_or(0);
    match template {
        "simple_fail" => script(format!("exit {code}")),
        // `exec` keeps the process id, so the signal reaches the program that waits.
        "long_running" => script(format!(": > \"${READY_VARIABLE}\"; exec sleep 300")),
        "multiline_output" => {
            let lines = command.output_lines.iter().flatten().map(|line| print(line, ""));
            script(format!("{}exit {code}", lines.collect::<String>()))
        }
        "print_and_exit" => {
            let out = command.print_stdout.as_deref().map(|text| print(text, "")).unwrap_or_default();
            let err = command.print_stderr.as_deref().map(|text| print(text, " >&2")).unwrap_or_default();
            // The pause keeps the order of the two streams observable on every system.
            script(format!("{out}sleep 0.1; {err}exit {code}"))
        }
        "create_executable_script" => {
            let field = FieldOf { template: "create_executable_script" };
            let path = field.required("script_path", command.script_path.as_ref())?;
            let args = field.required("check_args", command.check_args.as_ref())?;
            Ok((args, Some(TemplateFile { path, mode: 0o755 })))
        }
        "create_non_executable_file" => {
            let field = FieldOf { template: "create_non_executable_file" };
            let path = field.required("file_path", command.file_path.as_ref())?;
            let args = field.required("check_args", command.check_args.as_ref())?;
            Ok((args, Some(TemplateFile { path, mode: 0o644 })))
        }
        unknown => Err(TemplateError::Unknown(unknown.to_owned())),
    }
}

fn print(text: &str, redirection: &str) -> String {
    // Quoted even where `shell_words` would not: the script is in the log of the command, and golden outputs contain
    // it.
    format!("printf '%s\\n' '{}'{redirection}; ", text.replace('\'', r"'\''"))
}

struct FieldOf {
    template: &'static str,
}

impl FieldOf {
    fn required<T: Clone>(&self, field: &'static str, value: Option<&T>) -> Result<T, TemplateError> {
        value.cloned().ok_or(TemplateError::MissingField { template: self.template, field })
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum TrialError {
    #[error("failed to create a temporary folder: {0}")]
    TemporaryFolder(#[source] io::Error),
    #[error("the path of the temporary folder is not valid UTF-8")]
    NonUtf8Folder,
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error("{0}: {source}", source = .0.source)]
    Write(#[from] WriteError),
    #[error("failed to set the permissions of `{path}`: {source}")]
    #[cfg_attr(not(unix), expect(dead_code, reason = "other systems have no permission bits"))]
    Permissions { path: Utf8PathBuf, source: io::Error },
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    #[error(transparent)]
    Process(#[from] ProcessError),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TemplateError {
    #[error("unknown template `{0}`")]
    Unknown(String),
    #[error("the command has neither `args` nor `args_template`")]
    NoArguments,
    #[error("the command has both `args` and `args_template`")]
    AmbiguousArguments,
    #[error("the template `{template}` requires `{field}`")]
    MissingField { template: &'static str, field: &'static str },
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum SnapshotError {
    #[error("failed to list the folder: {0}")]
    List(#[from] walkdir::Error),
    #[error("a file name is not valid UTF-8")]
    NonUtf8Name,
    #[error("failed to read `{path}`: {source}")]
    Read { path: Utf8PathBuf, source: io::Error },
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ProcessError {
    #[error("failed to start `{program}`: {source}")]
    Start { program: String, source: io::Error },
    #[error("interrupted")]
    Interrupted,
    #[error("the program did not end within {} s", .0.as_secs())]
    Timeout(Duration),
    #[error("the command did not become ready for its signal")]
    NotReady,
    #[error("failed to read the output of the program: {0}")]
    Output(#[source] io::Error),
    #[error("failed to wait for the program: {0}")]
    Wait(#[source] io::Error),
    #[error("failed to send the signal: {0}")]
    Signal(#[source] io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(name: &str) -> VectorCommand {
        VectorCommand { args_template: Some(name.to_owned()), exit_code: Some(7), ..VectorCommand::default() }
    }

    fn script(command: &VectorCommand) -> String {
        let (arguments, file) = expand(command).unwrap();
        assert_eq!((&arguments[..2], file), (&["sh".to_owned(), "-c".to_owned()][..], None));
        arguments[2].clone()
    }

    #[test]
    fn arguments_are_used_as_they_are() {
        let args = vec!["echo".to_owned(), "a b".to_owned()];
        let command = VectorCommand { args: Some(args.clone()), ..VectorCommand::default() };
        assert_eq!(expand(&command), Ok((args, None)));
    }

    #[test]
    fn each_template_becomes_a_script() {
        assert_eq!(script(&template("simple_fail")), "exit 7");
        assert_eq!(script(&template("long_running")), ": > \"$CONFORMANCE_READY\"; exec sleep 300");
        let lines = Some(vec!["L1".to_owned(), "it's".to_owned()]);
        let command = VectorCommand { output_lines: lines, ..template("multiline_output") };
        assert_eq!(script(&command), r"printf '%s\n' 'L1'; printf '%s\n' 'it'\''s'; exit 7");
        let (print_stdout, print_stderr) = (Some("OUT".to_owned()), Some("ERR".to_owned()));
        let command = VectorCommand { print_stdout, print_stderr, ..template("print_and_exit") };
        assert_eq!(script(&command), r"printf '%s\n' 'OUT'; sleep 0.1; printf '%s\n' 'ERR' >&2; exit 7");
    }

    #[test]
    fn a_template_can_require_a_file() {
        let check_args = Some(vec!["./file".to_owned()]);
        let path = Some("file".to_owned());
        let executable = VectorCommand {
            check_args: check_args.clone(),
            script_path: path.clone(),
            ..template("create_executable_script")
        };
        let plain = VectorCommand { check_args, file_path: path, ..template("create_non_executable_file") };
        for (command, mode) in [(executable, 0o755), (plain, 0o644)] {
            let file = TemplateFile { path: "file".to_owned(), mode };
            assert_eq!(expand(&command), Ok((vec!["./file".to_owned()], Some(file))));
        }
    }

    #[test]
    fn a_command_that_cannot_be_expanded_is_an_error() {
        assert_eq!(expand(&VectorCommand::default()), Err(TemplateError::NoArguments));
        let both = VectorCommand { args: Some(Vec::new()), ..template("simple_fail") };
        assert_eq!(expand(&both), Err(TemplateError::AmbiguousArguments));
        assert_eq!(expand(&template("dance")), Err(TemplateError::Unknown("dance".to_owned())));
        let missing = TemplateError::MissingField { template: "create_executable_script", field: "script_path" };
        assert_eq!(expand(&template("create_executable_script")), Err(missing));
    }
}
