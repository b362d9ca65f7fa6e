//! Where a ledger is: a SQLite file or a PostgreSQL database, whose URL is shown without its password; and the folder for state.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Sha256Digest;
use percent_encoding::percent_decode_str;
use postgres::Config;
use postgres::config::Host;

const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LedgerLocation {
    SqliteFile(Utf8PathBuf),
    PostgreSql(PostgresUrl),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    #[error("the location of the ledger is empty")]
    Empty,
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
            // By the real path: all links to a ledger must lead to one spool, or a process would look dead under another name.
            LedgerLocation::SqliteFile(path) => Utf8PathBuf::from(format!("{}.spool", real_path(path))),
            // Below the state folder, because the database is on another machine. One folder for each database.
            LedgerLocation::PostgreSql(url) => {
                let name = Sha256Digest::from_bytes(url.database().as_bytes()).short();
                state.path().join(format!("postgres-{name}.spool"))
            }
        }
    }
}

impl LedgerLocation {
    /// Returns the location as it is parsed, with the password of a URL. Only for variables, which other users cannot see.
    pub fn expose(&self) -> &str {
        match self {
            LedgerLocation::SqliteFile(path) => path.as_str(),
            LedgerLocation::PostgreSql(url) => url.expose(),
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
            // A mistyped scheme must not create a file of that name.
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

const MAX_LINKS: u32 = 40;

/// Returns the absolute path of a file without symbolic links. The file need not exist.
pub fn real_path(path: &Utf8Path) -> Utf8PathBuf {
    follow(path, MAX_LINKS)
}

fn follow(path: &Utf8Path, links: u32) -> Utf8PathBuf {
    if let Ok(found) = path.canonicalize_utf8() {
        return found;
    }
    let (Some(folder), Some(name), Some(left)) = (path.parent(), path.file_name(), links.checked_sub(1)) else {
        return path.to_owned();
    };
    let folder = if folder.as_str().is_empty() { Utf8Path::new(".") } else { folder };
    match path.read_link_utf8() {
        // The target of the link does not exist yet.
        Ok(target) => follow(&folder.join(target), left),
        Err(_) => follow(folder, links).join(name),
    }
}

/// The folder of this program below the user's folder for state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateFolder(Utf8PathBuf);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the folder for the ledger is unknown: neither `XDG_STATE_HOME` nor `HOME` is an absolute path")]
pub struct StateFolderError;

impl StateFolder {
    /// Returns `$XDG_STATE_HOME/counterproof`, or `~/.local/state/counterproof`. `lookup` returns the value of an environment
    /// variable. As the XDG specification requires, relative paths are ignored.
    pub fn from_environment(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, StateFolderError> {
        let absolute = |name: &str| lookup(name).map(Utf8PathBuf::from).filter(|path| path.is_absolute());
        let state = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
        state.map(|state| Self(state.join("counterproof"))).ok_or(StateFolderError)
    }

    pub fn new(path: impl Into<Utf8PathBuf>) -> Self {
        Self(path.into())
    }

    pub fn path(&self) -> &Utf8Path {
        &self.0
    }
}

/// Parameters whose values are not secret. The values of all others are masked.
const PUBLIC: [&str; 17] = [
    "user",
    "dbname",
    "options",
    "application_name",
    "sslmode",
    "sslnegotiation",
    "host",
    "hostaddr",
    "port",
    "connect_timeout",
    "tcp_user_timeout",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "target_session_attrs",
    "channel_binding",
];

const PORT: u16 = 5432;

/// The URL of a PostgreSQL database. `Display` and `Debug` mask the password.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl(String);

/// The parts of a URL, as they are written.
struct Parts<'a> {
    scheme: &'a str,
    user: Option<&'a str>,
    password: Option<&'a str>,
    address: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
}

impl Parts<'_> {
    /// Joins the parts again, with a user, a password and parameters in another form.
    fn join(
        &self,
        user: impl Fn(&str) -> String,
        password: impl Fn(&str) -> String,
        parameter: impl Fn(&(&str, &str)) -> String,
    ) -> String {
        let user = match (self.user, self.password) {
            (Some(name), Some(secret)) => format!("{}:{}@", user(name), password(secret)),
            (Some(name), None) => format!("{}@", user(name)),
            (None, _) => String::new(),
        };
        let parameters: Vec<String> = self.parameters.iter().map(parameter).collect();
        let mark = if parameters.is_empty() { "" } else { "?" };
        format!("{}://{user}{}{mark}{}", self.scheme, self.address, parameters.join("&"))
    }
}

impl PostgresUrl {
    fn new(url: &str) -> Self {
        Self(url.to_owned())
    }

    /// Returns the whole URL, with the password.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns true if the URL has a password, or a part that may be one.
    pub fn has_password(&self) -> bool {
        let is_secret = |(name, _): &(&str, &str)| !is_public(name);
        self.parts().is_none_or(|parts| parts.password.is_some() || parts.parameters.iter().any(is_secret))
    }

    /// Returns the text from which a connection is made. Returns `None` if the parts cannot be separated.
    ///
    /// A password may contain `@`. The names of the server and of its certificate are always compared, as `verify-full` requires.
    pub(crate) fn connection_text(&self) -> Option<String> {
        let parts = self.parts()?;
        // Parsers take the first `@` for the end of the password.
        let escaped = |text: &str| text.replace('@', "%40");
        let parameter = |(name, value): &(&str, &str)| match (&*decoded(name), &*decoded(value)) {
            ("sslmode", "verify-full") => "sslmode=require".to_owned(),
            _ => format!("{}={}", escaped(name), escaped(value)),
        };
        Some(parts.join(escaped, escaped, parameter))
    }

    /// Returns what identifies the database: its hosts, their ports and its name.
    fn database(&self) -> String {
        let config = self.connection_text().and_then(|text| text.parse::<Config>().ok());
        // A URL that cannot be used needs a name for its spool folder too, and the password must not be part of it.
        let Some(config) = config else { return self.masked() };
        let ports = config.get_ports();
        let address = |(number, host): (usize, &Host)| {
            let port = ports.get(number).or(ports.first()).copied().unwrap_or(PORT);
            match host {
                Host::Tcp(name) => format!("{}:{port}", name.to_lowercase()),
                #[cfg(unix)]
                Host::Unix(path) => format!("{}:{port}", path.display()),
            }
        };
        let addresses: Vec<String> = config.get_hosts().iter().enumerate().map(address).collect();
        // A database without a name has the name of the user.
        let name = config.get_dbname().or(config.get_user()).unwrap_or_default();
        format!("{}/{name}", addresses.join(","))
    }

    /// Returns the parts, or `None` if a password with characters that must be encoded makes them ambiguous.
    fn parts(&self) -> Option<Parts<'_>> {
        let (scheme, rest) = self.0.split_once("://")?;
        let (front, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (user_info, address) = match front.rsplit_once('@') {
            Some((user_info, address)) => (Some(user_info), address),
            None if query.contains('@') => return None,
            None => (None, front),
        };
        let hosts = address.split('/').next().unwrap_or_default();
        if !hosts.split(',').all(has_valid_port) {
            return None;
        }
        let (user, password) = match user_info.map(|it| it.split_once(':').ok_or(it)) {
            Some(Ok((user, password))) => (Some(user), Some(password)),
            Some(Err(user)) => (Some(user), None),
            None => (None, None),
        };
        let parameters = query.split('&').filter(|text| !text.is_empty()).map(|text| text.split_once('='));
        let parameters = parameters.collect::<Option<_>>()?;
        Some(Parts { scheme, user, password, address, parameters })
    }

    /// Returns the URL without passwords, which can be before the host and among the parameters.
    fn masked(&self) -> String {
        let Some(parts) = self.parts() else { return "postgres://***".to_owned() };
        let parameter =
            |(name, value): &(&str, &str)| format!("{name}={}", if is_public(name) { value } else { "***" });
        parts.join(str::to_owned, |_| "***".to_owned(), parameter)
    }
}

fn is_public(name: &str) -> bool {
    PUBLIC.contains(&&*decoded(name))
}

fn decoded(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

/// Returns false if what follows the name of a host is not a port, but perhaps a part of a password.
fn has_valid_port(host: &str) -> bool {
    let rest = host.rsplit_once(']').map_or(host, |(_, rest)| rest);
    rest.split_once(':').is_none_or(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()))
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
    use std::os::unix::fs::symlink;

    use counterproof_store::write::{Durability, write};

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

    #[test]
    fn links_to_files_and_folders_are_followed_whether_or_not_they_exist() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap().canonicalize_utf8().unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        symlink("real", root.join("folder")).unwrap();
        symlink("../folder/target.db", root.join("real/link.db")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let target = root.join("real/target.db");
        for _ in 0..2 {
            assert_eq!(real_path(&root.join("folder/target.db")), target);
            assert_eq!(real_path(&root.join("folder/link.db")), target);
            assert_eq!(real_path(&root.join("folder/a/b.db")), root.join("real/a/b.db"));
            write(&target, b"", Durability::Cached).unwrap();
        }
        assert_eq!(real_path(&root.join("loop")).file_name(), Some("loop"));
        assert!(real_path(Utf8Path::new("a.db")).is_absolute());
    }

    #[test]
    fn the_state_folder_follows_the_xdg_specification() {
        let folder = |state: Option<&str>, home: Option<&str>| {
            let lookup = |name: &str| match name {
                "XDG_STATE_HOME" => state.map(str::to_owned),
                _ => home.map(str::to_owned),
            };
            StateFolder::from_environment(lookup).map(|folder| folder.path().to_string())
        };
        assert_eq!(folder(Some("/s"), Some("/h")).unwrap(), "/s/counterproof");
        assert_eq!(folder(None, Some("/h")).unwrap(), "/h/.local/state/counterproof");
        assert_eq!(folder(Some("relative"), Some("/h")).unwrap(), "/h/.local/state/counterproof");
        assert_eq!(folder(Some(""), None), Err(StateFolderError));
    }

    #[test]
    fn passwords_are_masked_wherever_they_are() {
        for (url, expected) in [
            ("postgres://u:s3cret@h:5/db?sslmode=require", "postgres://u:***@h:5/db?sslmode=require"),
            ("postgres://u:s3/cr@et@h/db", "postgres://u:***@h/db"),
            ("postgres://u@h/db?password=s3cr@et", "postgres://u@h/db?password=***"),
            ("postgres://u@h/db?pass%77ord=s3cret&user=a", "postgres://u@h/db?pass%77ord=***&user=a"),
            ("postgres:///db?host=/run&PassWord=s3cret", "postgres:///db?host=/run&PassWord=***"),
            ("postgres://u@h/db?sslkey=s3cret", "postgres://u@h/db?sslkey=***"),
            ("postgres://u:@[::1]:5/db", "postgres://u:***@[::1]:5/db"),
            // The parts cannot be separated.
            ("postgres://u:s3cret@x/?@h/db", "postgres://***"),
            ("postgres://u:s3cret?x=y@h/db", "postgres://***"),
            ("postgres://u:123?s3cret=y@h/db", "postgres://***"),
            ("postgres://h/db?password=s3cr@et", "postgres://***"),
            ("postgres://u:s3cret", "postgres://***"),
        ] {
            let shown = PostgresUrl::new(url);
            assert_eq!(shown.to_string(), expected, "{url}");
            assert!(!format!("{shown:?}").contains("cret") && shown.has_password(), "{shown:?}");
        }
        for url in ["postgres://u@h/db", "postgresql://h,i:5/db?sslmode=require&connect_timeout=3"] {
            let shown = PostgresUrl::new(url);
            assert_eq!((shown.to_string().as_str(), shown.has_password()), (url, false));
        }
    }

    #[test]
    fn a_connection_uses_the_parts_that_messages_show() {
        let config = |url: &str| PostgresUrl::new(url).connection_text().unwrap().parse::<Config>().unwrap();
        let found = config("postgres://u:a@b@h/db?sslmode=verify-full&application_name=x@y");
        assert_eq!((found.get_user(), found.get_password()), (Some("u"), Some(&b"a@b"[..])));
        assert_eq!((found.get_dbname(), found.get_application_name()), (Some("db"), Some("x@y")));
        assert_eq!(found.get_ssl_mode(), postgres::config::SslMode::Require);
        let found = config("postgres://u@h/db?password=s3cr@et");
        assert_eq!((found.get_hosts().len(), found.get_password()), (1, Some(&b"s3cr@et"[..])));
    }

    #[test]
    fn a_database_is_the_same_by_all_its_urls() {
        let database = |url: &str| PostgresUrl::new(url).database();
        let expected = database("postgres://u:old@H/a");
        for url in [
            "postgresql://h:5432/a",
            "postgres://v:new@h/a?sslmode=require",
            "postgres:///a?host=h",
            "postgres://h?dbname=a",
            "postgres://a@h",
        ] {
            assert_eq!(database(url), expected, "{url}");
        }
        for url in ["postgres://h/b", "postgres://h:5433/a", "postgres://i/a", "postgres://%2Frun/a"] {
            assert_ne!(database(url), expected, "{url}");
        }
    }
}
