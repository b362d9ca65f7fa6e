//! Errors of git.

use camino::Utf8PathBuf;

/// A git command that failed, or output that is not understood.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// The program could not be started.
    #[error("cannot start `git`")]
    Start(#[source] std::io::Error),
    #[error("`git {command}` failed: {message}")]
    Failed {
        /// The arguments.
        command: String,
        /// The first lines of its standard error.
        message: String,
    },
    /// A path in the repository is not UTF-8.
    #[error("a path in the repository is not UTF-8: {0:?}")]
    PathNotUtf8(String),
    /// A file could not be removed or read.
    #[error("cannot change `{path}`")]
    File {
        /// The file.
        path: Utf8PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The output of git has an unexpected form.
    #[error("unexpected output of `git {0}`")]
    Output(String),
}
