//! Errors of a trial. They mean that the trial could not be completed, not that the program is wrong.

use std::io;
use std::time::Duration;

use camino::Utf8PathBuf;
use counterproof_store::write::WriteError;

/// A trial that could not be completed.
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

/// A command of a vector that cannot be expanded.
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

/// A folder whose content could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SnapshotError {
    #[error("failed to list the folder: {0}")]
    List(#[from] walkdir::Error),
    #[error("a file name is not valid UTF-8")]
    NonUtf8Name,
    #[error("failed to read `{path}`: {source}")]
    Read { path: Utf8PathBuf, source: io::Error },
}

/// A process that could not be started or did not end as required.
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
