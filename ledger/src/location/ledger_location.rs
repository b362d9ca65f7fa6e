//! The location of a ledger, as an option states it.

use std::fmt;
use std::str::FromStr;

use camino::Utf8PathBuf;
use counterproof_artifact::Sha256Digest;

use super::StateFolder;

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

/// The URL of a PostgreSQL database. `Display` and `Debug` mask the password.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl(String);

/// A location that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// The text is empty.
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

    /// Returns the folder in which recorders keep events until the ledger has them.
    pub fn spool_folder(&self, state: &StateFolder) -> Utf8PathBuf {
        match self {
            LedgerLocation::SqliteFile(path) => Utf8PathBuf::from(format!("{path}.spool")),
            // Below the state folder, because the database is on another machine. One folder for each database.
            LedgerLocation::PostgreSql(url) => {
                let name = Sha256Digest::from_bytes(url.masked().as_bytes()).short();
                state.path().join(format!("postgres-{name}.spool"))
            }
        }
    }
}

impl FromStr for LedgerLocation {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<Self, LocationError> {
        if SCHEMES.iter().any(|scheme| text.starts_with(scheme)) {
            return Ok(LedgerLocation::PostgreSql(PostgresUrl(text.to_owned())));
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

impl PostgresUrl {
    /// Returns the whole URL, with the password.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the URL without passwords, which can be before the host and among the parameters.
    fn masked(&self) -> String {
        let (scheme, rest) = self.0.split_once("://").unwrap_or(("postgres", &self.0));
        // The last `@`: a password that is not encoded may contain others, and any other character.
        let (user, rest) = match rest.rsplit_once('@') {
            Some((user, rest)) => match user.split_once(':') {
                Some((name, _)) => (format!("{name}:***@"), rest),
                None => (format!("{user}@"), rest),
            },
            None => (String::new(), rest),
        };
        let (address, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let kept: Vec<String> = parameters.split('&').filter(|it| !it.is_empty()).map(mask_parameter).collect();
        let mark = if kept.is_empty() { "" } else { "?" };
        format!("{scheme}://{user}{address}{mark}{}", kept.join("&"))
    }
}

fn mask_parameter(parameter: &str) -> String {
    match parameter.split_once('=') {
        Some((name, _)) if name.to_ascii_lowercase().contains("pass") => format!("{name}=***"),
        _ => parameter.to_owned(),
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.masked())
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresUrl({})", self.masked())
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
    fn passwords_are_masked() {
        let shown = |text: &str| {
            let location: LedgerLocation = text.parse().unwrap();
            assert!(!format!("{location:?}").contains("s3cret"), "{location:?}");
            location.to_string()
        };
        assert_eq!(shown("postgres://u:s3cret@h:5/db?sslmode=require"), "postgres://u:***@h:5/db?sslmode=require");
        assert_eq!(shown("postgres://u:s3cret@x/?@h/db"), "postgres://u:***@h/db");
        assert_eq!(shown("postgres://u@h/db"), "postgres://u@h/db");
        assert_eq!(shown("postgres:///db?host=/run&PassWord=s3cret"), "postgres:///db?host=/run&PassWord=***");
    }

    #[test]
    fn the_spool_is_next_to_a_file_and_below_the_state_folder_for_a_database() {
        let state = StateFolder::new("/s");
        let spool = |text: &str| text.parse::<LedgerLocation>().unwrap().spool_folder(&state).to_string();
        assert_eq!(spool("/l/a.db"), "/l/a.db.spool");
        assert!(spool("postgres://h/a").starts_with("/s/postgres-"));
        assert_ne!(spool("postgres://h/a"), spool("postgres://h/b"));
        assert_eq!(spool("postgres://u:old@h/a"), spool("postgres://u:new@h/a"), "a new password changes nothing");
    }
}
