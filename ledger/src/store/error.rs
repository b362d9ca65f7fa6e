//! Errors of a store.

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::write::WriteError;

use crate::location::PostgresUrl;

/// A store that cannot be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The ledger does not exist.
    #[error("there is no ledger at `{location}`")]
    Missing { location: String },
    /// The database belongs to another program.
    #[error("`{location}` is not a ledger: {reason}")]
    NotALedger {
        location: String,
        /// What was found.
        reason: String,
    },
    /// A newer version of this program has written the database.
    #[error("the ledger `{location}` has schema version {found}; this program supports versions up to {known}")]
    Newer {
        location: String,
        /// The version of the database.
        found: i64,
        /// The newest known version.
        known: i64,
    },
    /// The file was removed or replaced after it was opened.
    #[error("the ledger `{location}` was removed or replaced")]
    Replaced { location: String },
    /// The file or its folder cannot be created.
    #[error(transparent)]
    Create(#[from] WriteError),
    /// The URL of a PostgreSQL database is invalid, or has a parameter that is not supported.
    #[error("cannot use the URL `{location}`: {reason}")]
    Url {
        location: String,
        /// What is wrong.
        reason: String,
    },
    /// A connection with TLS needs the certificates of authorities.
    #[error("cannot connect to `{location}`: the certificates of the system cannot be read: {reason}")]
    Tls {
        location: String,
        /// What is wrong.
        reason: String,
    },
    /// The PostgreSQL database failed.
    #[error("failed to use the ledger `{location}`")]
    Postgres {
        location: String,
        /// The error of the server or of the connection.
        source: postgres::Error,
    },
    /// The SQLite database failed.
    #[error("failed to use the ledger `{path}`")]
    Sqlite {
        /// The file.
        path: Utf8PathBuf,
        /// The error of the database.
        source: rusqlite::Error,
    },
}

impl StoreError {
    pub(crate) fn postgres(url: &PostgresUrl) -> impl Fn(postgres::Error) -> Self + use<> {
        let location = url.to_string();
        move |source| StoreError::Postgres { location: location.clone(), source }
    }

    pub(crate) fn sqlite(path: &Utf8Path) -> impl Fn(rusqlite::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| StoreError::Sqlite { path: path.clone(), source }
    }
}
