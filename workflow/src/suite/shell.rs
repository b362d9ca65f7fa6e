//! Runs command lines of the user and of the detection, without the secrets of the environment.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read as _;
use std::path::PathBuf;
use std::time::Duration;

use camino::Utf8Path;
use counterproof_contracts::process::{
    self, Cancellation, FinishedCommand, MAX_OUTPUT_BYTES, ProcessError, ShellCommand, StopReason,
};
use counterproof_safe_run::{Ending, EventKind};

use super::read::{MAX_LINE_BYTES, Reader};
use super::report::TestReport;
use crate::secret_variables::gives_access;

/// The longest time that the question for a Python module may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(30);

/// The part of each stream that is kept for the record of the command, in bytes.
const MAX_RECORDED_BYTES: u64 = 32 << 20;

#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    #[error("cancelled while `{0}` ran")]
    Cancelled(String),
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("cannot read the output of `{line}`")]
    Output { line: String, source: std::io::Error },
}

/// How command lines run. Nothing of a command is left when it has ended.
#[derive(Debug, Clone)]
pub struct Shell {
    pub timeout: Duration,
    pub cancellation: Cancellation,
    /// Variables to set or to remove (`None`), after the secrets were removed.
    pub environment: BTreeMap<OsString, Option<OsString>>,
    /// See [`ShellCommand::supervisor`](counterproof_contracts::process::ShellCommand::supervisor).
    pub supervisor: Option<PathBuf>,
}

/// A command line that has ended, also by its time limit.
#[derive(Debug)]
pub struct Finished {
    pub report: TestReport,
    /// With the start of its output, which is not redacted.
    pub command: FinishedCommand,
}

impl Shell {
    pub fn new(timeout: Duration, cancellation: Cancellation) -> Self {
        Self { timeout, cancellation, environment: BTreeMap::new(), supervisor: None }
    }

    /// Runs `line` by `sh -c` in `folder` and reads its results.
    pub fn run(&self, line: &str, folder: &Utf8Path) -> Result<Finished, ShellError> {
        let command = ShellCommand {
            environment: self.variables(),
            timeout: self.timeout,
            // The report is read from the whole output, and not from these.
            stdout_limit: MAX_RECORDED_BYTES,
            stderr_limit: MAX_RECORDED_BYTES,
            output_limit: MAX_OUTPUT_BYTES,
            supervisor: self.supervisor.clone(),
            ..ShellCommand::new(line, folder)
        };
        let finished = match process::run(&command, &self.cancellation) {
            Err(ProcessError::Cancelled) => return Err(ShellError::Cancelled(line.to_owned())),
            finished => finished?,
        };
        if finished.stopped == Some(StopReason::Cancelled) {
            return Err(ShellError::Cancelled(line.to_owned()));
        }
        let report = report(&finished).map_err(|source| ShellError::Output { line: line.to_owned(), source })?;
        Ok(Finished { report, command: finished })
    }

    /// Reports whether Python can import a module that is not one of the repository.
    pub fn has_python_module(&self, name: &str) -> bool {
        let shell = Shell { timeout: PROBE_TIMEOUT, ..self.clone() };
        // In the root folder: Python also imports modules from where it is started.
        shell.run(&format!("python3 -c 'import {name}'"), Utf8Path::new("/")).is_ok_and(|it| it.report.is_success())
    }

    fn variables(&self) -> BTreeMap<OsString, Option<OsString>> {
        let mut variables = without_access(std::env::vars_os());
        // Compiled files would be changes of the workspace.
        variables.insert("PYTHONDONTWRITEBYTECODE".into(), Some("1".into()));
        variables.extend(self.environment.clone());
        variables
    }
}

/// Returns the removal of each variable that gives access to something.
pub fn without_access(variables: impl Iterator<Item = (OsString, OsString)>) -> BTreeMap<OsString, Option<OsString>> {
    variables.filter(|(name, value)| gives_access(name, value)).map(|(name, _)| (name, None)).collect()
}

fn report(finished: &FinishedCommand) -> std::io::Result<TestReport> {
    let mut reader = Reader::default();
    let mut buffer = Vec::new();
    finished.record().for_each_event::<std::io::Error>(|event| {
        if let EventKind::Line(_, line) = event.kind {
            buffer.clear();
            line.reader().take(MAX_LINE_BYTES as u64).read_to_end(&mut buffer)?;
            reader.line(&buffer);
        }
        Ok(())
    })?;
    let exit_code = match finished.ending {
        _ if finished.stopped.is_some() => None,
        Ending::Exited(code) => Some(code),
        Ending::Killed(_) => None,
    };
    Ok(reader.finish(exit_code, finished.stopped == Some(StopReason::TimedOut)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_a_repository_get_no_variable_that_gives_access() {
        let variables = [
            ("PATH", "/bin"),
            ("CARGO_TARGET_DIR", "/x"),
            ("OPENAI_API_KEY", "x"),
            ("SSH_AUTH_SOCK", "/x"),
            ("GIT_CONFIG_COUNT", "1"),
            ("DATABASE_URL", "postgres://app:hunter22@db/x"),
        ];
        let removed = without_access(variables.into_iter().map(|(name, value)| (name.into(), value.into())));
        let names: Vec<&str> = removed.keys().map(|name| name.to_str().unwrap()).collect();
        assert_eq!(names, ["DATABASE_URL", "GIT_CONFIG_COUNT", "OPENAI_API_KEY", "SSH_AUTH_SOCK"]);
    }
}
