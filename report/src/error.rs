//! Errors of writing a report.

use std::io;

use camino::Utf8PathBuf;
use counterproof_store::ReadError;
use counterproof_store::write::{SiteError, WriteError};

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A run folder could not be listed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The output folder holds files that this program did not write.
    #[error("`{0}` exists and is not a report; nothing was written")]
    NotAReport(Utf8PathBuf),
    /// A compared run is inside the output folder, which the report replaces.
    #[error("the run `{run}` is inside the report folder `{out}`, which would be replaced")]
    RunInside {
        /// The run folder.
        run: Utf8PathBuf,
        /// The report folder.
        out: Utf8PathBuf,
    },
    /// The output folder could not be read.
    #[error("failed to read `{path}`")]
    Folder {
        /// The file or folder.
        path: Utf8PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Another process writes a report into the folder.
    #[error("another process is writing a report to `{0}`")]
    Busy(Utf8PathBuf),
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A page could not be rendered.
    #[error("failed to render `{page}`")]
    Render {
        /// The path of the page within the report.
        page: String,
        /// The error of the template engine.
        source: askama::Error,
    },
}

impl From<SiteError> for ReportError {
    fn from(error: SiteError) -> Self {
        match error {
            SiteError::Foreign(out) => Self::NotAReport(out),
            SiteError::Read { path, source } => Self::Folder { path, source },
            SiteError::Busy(out) => Self::Busy(out),
            SiteError::Write(error) => Self::Write(error),
        }
    }
}
