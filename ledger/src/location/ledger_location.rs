//! The location of a ledger, as an option states it.

use std::fmt;
use std::str::FromStr;

use camino::Utf8PathBuf;
use counterproof_artifact::Sha256Digest;

use super::{PostgresUrl, StateFolder, real_path};

/// The schemes of PostgreSQL URLs.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// Where a ledger is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LedgerLocation {
    /// A SQLite file.
    SqliteFile(Utf8PathBuf),
    /// A PostgreSQL database.
    PostgreSql(PostgresUrl),
}

/// A location that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    #[error("the location of the ledger is empty")]
    Empty,
    /// A URL of another kind.
    #[error("a ledger cannot be at a `{0}` URL: pass a file, or a `postgres://` URL")]
    Scheme(String),
}

impl LedgerLocation {
    /// Returns the ledger that is used unless another one is named.
    pub fn default_in(state: &StateFolder) -> Self {
        LedgerLocation::SqliteFile(state.path().join("ledger.db"))
    }

    /// Returns the folder in which recorders keep events until the ledger has them. It is the same for all names of a ledger.
    pub fn spool_folder(&self, state: &StateFolder) -> Utf8PathBuf {
        match self {
            LedgerLocation::SqliteFile(path) => Utf8PathBuf::from(format!("{}.spool", real_path(path))),
            // Below the state folder, because the database is on another machine. One folder for each database.
            LedgerLocation::PostgreSql(url) => {
                let name = Sha256Digest::from_bytes(url.database().as_bytes()).short();
                state.path().join(format!("postgres-{name}.spool"))
            }
        }
    }
}

impl FromStr for LedgerLocation {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<Self, LocationError> {
        if SCHEMES.iter().any(|scheme| text.starts_with(scheme)) {
            return Ok(LedgerLocation::PostgreSql(PostgresUrl::new(text)));
        }
        match text.split_once("://") {
            Some((scheme, _)) => Err(LocationError::Scheme(scheme.to_owned())),
            None if text.is_empty() => Err(LocationError::Empty),
            None => Ok(LedgerLocation::SqliteFile(Utf8PathBuf::from(text))),
        }
    }
}

impl fmt::Display for LedgerLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LedgerLocation::SqliteFile(path) => path.fmt(f),
            LedgerLocation::PostgreSql(url) => url.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_a_database_and_anything_else_a_file() {
        let parse = |text: &str| text.parse::<LedgerLocation>();
        assert_eq!(parse("a b.db").unwrap(), LedgerLocation::SqliteFile("a b.db".into()));
        assert!(matches!(parse("postgresql://h/db").unwrap(), LedgerLocation::PostgreSql(_)));
        assert_eq!(parse("mysql://h"), Err(LocationError::Scheme("mysql".to_owned())));
        assert_eq!(parse(""), Err(LocationError::Empty));
    }

    #[test]
    fn the_spool_is_next_to_a_file_and_below_the_state_folder_for_a_database() {
        let state = StateFolder::new("/s");
        let spool = |text: &str| text.parse::<LedgerLocation>().unwrap().spool_folder(&state).to_string();
        assert_eq!(spool("/l/a.db"), "/l/a.db.spool");
        assert!(spool("postgres://h/a").starts_with("/s/postgres-"));
        assert_ne!(spool("postgres://h/a"), spool("postgres://h/b"));
        assert_eq!(spool("postgres://u:old@h/a"), spool("postgresql://v:new@h:5432/a"), "the database is the same");
    }
}
