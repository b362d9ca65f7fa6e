//! Errors of the file of secrets.

use std::io;

use camino::Utf8PathBuf;
use counterproof_store::write::WriteError;

use super::InvalidSecret;

/// A file of secrets that cannot be used. No message contains a value.
#[derive(Debug, thiserror::Error)]
pub enum SecretStoreError {
    /// The file cannot be read.
    #[error("cannot read the secrets in `{path}`")]
    Read {
        /// The file.
        path: Utf8PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Other users can read or change the file or its folder.
    #[error("the secrets in `{path}` are not private: {reason}")]
    NotPrivate {
        /// The file or folder.
        path: Utf8PathBuf,
        reason: String,
        /// The words of the command that makes it private.
        remedy: Vec<String>,
    },
    /// The file is not an object of secrets.
    #[error("the secrets in `{path}` are invalid: {place}{message}")]
    Invalid {
        /// The file.
        path: Utf8PathBuf,
        /// The line and column, if they are known.
        place: String,
        /// What is wrong.
        message: String,
    },
    /// A value in the file cannot be a secret.
    #[error("the secret `{name}` in `{path}` is invalid")]
    InvalidValue {
        /// The file.
        path: Utf8PathBuf,
        name: String,
        /// The reason.
        source: InvalidSecret,
    },
    /// The file is a symbolic link to nothing.
    #[error("`{0}` is a symbolic link to a file that does not exist")]
    DanglingLink(Utf8PathBuf),
    /// Another process changes the file.
    #[error("another process is changing `{0}`")]
    Locked(Utf8PathBuf),
    /// The lock file cannot be created.
    #[error("cannot lock `{path}`")]
    Lock {
        /// The lock file.
        path: Utf8PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl SecretStoreError {
    /// The remedy, if there is a specific one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotPrivate { remedy, .. } => Some(format!("run `{}`", shell_words::join(remedy))),
            Self::DanglingLink(_) => Some(
                "remove the link, or create the folder and an empty JSON object `{}` with the mode 600 where it leads"
                    .to_owned(),
            ),
            _ => None,
        }
    }

    /// True if the file could not be read or written at all.
    pub fn is_io(&self) -> bool {
        matches!(self, Self::Read { .. } | Self::Locked(_) | Self::Lock { .. } | Self::Write(_))
    }
}
