//! The errors of a run as a whole. A failed case is not such an error: it becomes an artifact.

use counterproof_artifact::Run;
use counterproof_store::write::WriteError;
use counterproof_store::{CreateError, ReadError, ReopenError};

use crate::folder::{Changes, SalvageError};
use crate::http::ClientError;

/// Why a run could not start or finish.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The run folder could not be created.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// The run could not be resumed.
    #[error(transparent)]
    Resume(#[from] ResumeError),
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The run id, which is a file name, contains a configured secret. The message does not quote it.
    #[error("the run id contains a secret, and run ids are file names")]
    SecretRunId,
    /// A case id, which is a file name, contains a configured secret. The message does not quote it.
    #[error("the id of case number {number} contains a secret, and case ids are file names")]
    SecretCaseId {
        /// The position of the case, counted from 1.
        number: usize,
    },
    /// The HTTP client could not be created.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The system provides no threads or timers.
    #[error("failed to start the runner")]
    Start(#[source] std::io::Error),
}

/// Why a run could not be resumed.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// The run folder could not be reopened.
    #[error(transparent)]
    Reopen(#[from] ReopenError),
    /// A file of the run could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file could not be written or removed.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The cases or settings differ from those of the started run.
    #[error("the run `{}` was started with other cases or settings: {changes}", run.run_id)]
    Changed {
        /// The document of the started run.
        run: Box<Run>,
        /// The differences.
        changes: Changes,
    },
}

impl From<SalvageError> for ResumeError {
    fn from(error: SalvageError) -> Self {
        match error {
            SalvageError::Read(error) => error.into(),
            SalvageError::Write(error) => error.into(),
        }
    }
}
