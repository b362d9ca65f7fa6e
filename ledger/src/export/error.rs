//! Errors of the export.

use counterproof_artifact::CaseId;
use counterproof_store::CreateError;
use counterproof_store::write::WriteError;

use crate::store::StoreError;

/// Runs that could not be exported. No run folder is left.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The ledger could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Two runs are the same case.
    #[error("the runs `{first}` and `{second}` have the same case id `{case_id}`")]
    DuplicateCaseId {
        case_id: CaseId,
        /// The run that has it.
        first: String,
        /// The other run.
        second: String,
    },
    /// The run folder could not be created.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}
