//! The tables of the index, in a SQLite file.

use std::time::Duration;

use camino::Utf8Path;
use rusqlite::{Connection, Result};

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

/// Opens the index file. `is_needed` is false if there are no lines to index, and then no file is created.
pub(super) fn open(path: &Utf8Path, is_needed: bool) -> Result<Connection> {
    if is_needed || path.exists() {
        let opened = open_file(path);
        // A file that is no database, or one that is damaged, is replaced: it contains nothing that the lines do not.
        if let Err(rusqlite::Error::SqliteFailure(failure, _)) = &opened
            && matches!(failure.code, rusqlite::ErrorCode::NotADatabase | rusqlite::ErrorCode::DatabaseCorrupt)
        {
            remove(path);
            if let Ok(connection) = open_file(path) {
                return Ok(connection);
            }
        } else if let Ok(connection) = opened {
            return Ok(connection);
        }
    }
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(TABLES)?;
    Ok(connection)
}

/// Removes the index file and the files that SQLite keeps next to it.
pub(super) fn remove(path: &Utf8Path) {
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{path}{suffix}"));
    }
}

fn open_file(path: &Utf8Path) -> Result<Connection> {
    let connection = Connection::open(path)?;
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
