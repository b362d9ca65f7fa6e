//! Errors of the export.

use camino::Utf8PathBuf;
use counterproof_artifact::{CaseId, NameError};
use counterproof_store::CreateError;
use counterproof_store::write::WriteError;

use crate::parse::ReadError;

/// Records that could not be exported. No run folder is left, and the records are unchanged.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A record could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A log and a file of events are not records of the same execution.
    #[error("`{record}` and `{events}` are not records of the same execution: {difference}")]
    Mismatch {
        /// The log.
        record: Utf8PathBuf,
        events: Utf8PathBuf,
        difference: &'static str,
    },
    /// Two cases have the same id.
    #[error("duplicate case id `{0}`")]
    DuplicateCaseId(CaseId),
    /// A generated case id is invalid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The run folder could not be created.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}
