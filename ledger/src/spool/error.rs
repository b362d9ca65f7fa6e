//! Errors of spool files.

use camino::Utf8PathBuf;
use counterproof_store::line_log::LogError;
use counterproof_store::write::WriteError;

use crate::store::StoreError;

/// A spool that cannot be read, written or moved to the store.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// The folder cannot be read.
    #[error("failed to read the folder `{path}`")]
    Folder {
        /// The folder.
        path: Utf8PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A file or folder cannot be created.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A spool file cannot be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A file does not have the lines that were written to it. A later attempt finds what is left of them.
    #[error("the spool file `{path}` was changed by another program")]
    Changed {
        /// The file.
        path: Utf8PathBuf,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
}
