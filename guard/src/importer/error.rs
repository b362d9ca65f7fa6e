//! Errors of imports.

use std::io;

use camino::Utf8PathBuf;
use counterproof_store::write::WriteError;
use counterproof_validation::Position;

/// An import or a restoration that changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The configuration does not exist.
    #[error("the configuration `{path}` does not exist")]
    Missing {
        /// The file.
        path: Utf8PathBuf,
    },
    /// A file cannot be read.
    #[error("cannot read `{path}`")]
    Read {
        /// The file.
        path: Utf8PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The configuration is not valid. The message quotes no part of it, because it may contain secrets.
    #[error("the configuration `{path}` is invalid: line {}, column {}: {message}", .position.line, .position.column)]
    Invalid {
        /// The file.
        path: Utf8PathBuf,
        /// The place of the error.
        position: Position,
        /// What is wrong.
        message: String,
    },
    /// The configuration belongs to another user, who could not write it any more.
    #[error("the configuration `{path}` belongs to the user with the id {owner}")]
    OtherOwner {
        /// The file.
        path: Utf8PathBuf,
        /// The user.
        owner: u32,
    },
    /// Another program wrote the configuration in the meantime.
    #[error("the configuration `{path}` was changed by another program in the meantime")]
    Changed {
        /// The file.
        path: Utf8PathBuf,
    },
    /// The original was not saved.
    #[error("there is no backup of `{path}`")]
    NoBackup {
        /// The configuration.
        path: Utf8PathBuf,
    },
    /// The backup is not the file that the import wrote.
    #[error("the backup `{path}` was changed after the import")]
    ChangedBackup {
        /// The backup.
        path: Utf8PathBuf,
    },
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A file cannot be removed.
    #[error("cannot remove `{path}`")]
    Remove {
        /// The file.
        path: Utf8PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl ImportError {
    /// True if a file could not be read or written.
    pub fn is_io(&self) -> bool {
        matches!(
            self,
            Self::Missing { .. } | Self::Read { .. } | Self::Write(_) | Self::Remove { .. } | Self::Changed { .. }
        )
    }

    /// The remedy, if there is a general one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Invalid { .. } => Some("correct the file; nothing was changed"),
            Self::NoBackup { .. } => Some("`--force` needs the backup that `counterproof guard import` writes"),
            Self::OtherOwner { .. } => Some("run the command as that user"),
            Self::Changed { .. } => Some("run the command again; nothing was changed"),
            Self::ChangedBackup { .. } => {
                Some("without `--force`, the command unwraps the servers and keeps everything else")
            }
            _ => None,
        }
    }
}
