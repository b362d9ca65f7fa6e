//! The tables of the index, in a SQLite file.

use std::time::Duration;

use camino::Utf8Path;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, Result};

use super::error::is_damage;

/// Changes with the tables and with the meaning of their columns. An index of another format is built anew.
const FORMAT: i64 = 3;

/// How long to wait for another process that updates the index.
const BUSY: Duration = Duration::from_mins(1);

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS coverage (
    one INTEGER PRIMARY KEY CHECK (one = 1), bytes INTEGER NOT NULL, file TEXT NOT NULL, modified TEXT NOT NULL, tail TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS contract (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, version INTEGER NOT NULL, state TEXT NOT NULL, since TEXT,
    owner TEXT, awaits_approval INTEGER NOT NULL, rollback_refused INTEGER NOT NULL, project TEXT NOT NULL,
    created_at TEXT, offset INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS contract_by_state ON contract (state, id);
CREATE TABLE IF NOT EXISTS line (
    contract INTEGER NOT NULL, offset INTEGER NOT NULL, PRIMARY KEY (contract, offset)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS dependency (
    dependency TEXT NOT NULL, contract INTEGER NOT NULL, PRIMARY KEY (dependency, contract)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS dependency_by_contract ON dependency (contract);
";

/// Opens the index file of a log. If there are no lines to index, no file is created.
pub(super) fn open(path: &Utf8Path, log: &Utf8Path) -> Result<Connection> {
    if !log.exists() && !path.exists() {
        return in_memory();
    }
    match open_file(path, log) {
        // A file that is no database, or one that is damaged, is emptied: it contains nothing that the lines do not.
        Err(error) if is_damage(&error) => reset(path, log),
        Err(_) => in_memory(),
        opened => opened,
    }
}

/// Empties a damaged index file and opens it.
pub(super) fn reset(path: &Utf8Path, log: &Utf8Path) -> Result<Connection> {
    // In place where possible, because other processes may use the file at this time.
    if empty(path).and_then(|()| open_file(path, log)).is_err() {
        remove(path);
    }
    open_file(path, log).or_else(|_| in_memory())
}

fn in_memory() -> Result<Connection> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(TABLES)?;
    Ok(connection)
}

/// Makes an empty database of a file with any content, under the locks of the database.
fn empty(path: &Utf8Path) -> Result<()> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, true)?;
    connection.execute_batch("VACUUM")?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, false).map(drop)
}

/// Removes the index file and the files that SQLite keeps next to it.
fn remove(path: &Utf8Path) {
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{path}{suffix}"));
    }
}

fn open_file(path: &Utf8Path, log: &Utf8Path) -> Result<Connection> {
    let connection = Connection::open(path)?;
    copy_mode(log, path);
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    // A power failure can lose the last updates, which are made again from the lines. It cannot damage the file.
    connection.pragma_update(None, "synchronous", "normal")?;
    if connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))? != FORMAT {
        connection.execute_batch(
            "BEGIN IMMEDIATE; DROP TABLE IF EXISTS coverage; DROP TABLE IF EXISTS contract; DROP TABLE IF EXISTS line; \
             DROP TABLE IF EXISTS dependency;",
        )?;
        connection.execute_batch(TABLES)?;
        connection.pragma_update(None, "user_version", FORMAT)?;
        connection.execute_batch("COMMIT")?;
    }
    Ok(connection)
}

/// Gives the index the mode of its log, because it contains parts of the lines. SQLite gives it to its other files.
#[cfg(unix)]
fn copy_mode(log: &Utf8Path, index: &Utf8Path) {
    use std::os::unix::fs::PermissionsExt as _;

    let (Ok(log), Ok(now)) = (log.metadata(), index.metadata()) else { return };
    // The owner of a log that is read-only can still update the index.
    let mode = log.permissions().mode() & 0o666 | 0o600;
    if now.permissions().mode() & 0o777 != mode {
        // Fails for a file of another user, who decides about its mode.
        let _ = std::fs::set_permissions(index, std::fs::Permissions::from_mode(mode));
    }
}

#[cfg(not(unix))]
fn copy_mode(_log: &Utf8Path, _index: &Utf8Path) {}
