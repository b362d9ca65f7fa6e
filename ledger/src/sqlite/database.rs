//! Opens the SQLite file of a ledger, and creates its tables.

use std::time::Duration;

use camino::Utf8Path;
use counterproof_store::write;
use rusqlite::{Connection, OpenFlags};

use crate::store::StoreError;
use crate::tables::{ALL, Dialect, INDEXES, SCHEMA_VERSION, create_events, create_index, create_table};

/// How long a statement waits for other processes. Each holds the lock for one batch.
pub(super) const BUSY: Duration = Duration::from_secs(5);

/// Identifies the file as a ledger: the letters `CPLg`.
const APPLICATION_ID: i64 = 0x4350_4c67;

/// Pages of the log after which SQLite copies them into the database: about 16 MB.
const CHECKPOINT_PAGES: i64 = 4000;

/// Statements that stay prepared.
const STATEMENTS: usize = 64;

/// Opens a ledger, and creates it where it does not exist.
pub(super) fn open_or_create(path: &Utf8Path) -> Result<Connection, StoreError> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_str().is_empty()) {
        write::create_private_folder(folder)?;
    }
    // SQLite gives its other files the same mode.
    write::create_private_file(path)?;
    open(path)
}

/// Opens a ledger that exists.
pub(super) fn open(path: &Utf8Path) -> Result<Connection, StoreError> {
    let failed = StoreError::sqlite(path);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(&failed)?;
    prepare(&connection, path)?;
    Ok(connection)
}

fn prepare(connection: &Connection, path: &Utf8Path) -> Result<(), StoreError> {
    let failed = StoreError::sqlite(path);
    connection.busy_timeout(BUSY).map_err(&failed)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    let version = check(connection, path)?;
    let configure = || {
        connection.pragma_update(None, "journal_mode", "wal")?;
        // Each commit is on disk when it returns.
        connection.pragma_update(None, "synchronous", "full")?;
        connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)
    };
    configure().map_err(&failed)?;
    if version == SCHEMA_VERSION {
        return Ok(());
    }
    connection.execute_batch("BEGIN IMMEDIATE").map_err(&failed)?;
    // Another process may have created the tables in the meantime.
    let created = check(connection, path).and_then(|version| create_tables(connection, version).map_err(&failed));
    match created {
        Ok(()) => connection.execute_batch("COMMIT").map_err(&failed),
        Err(error) => {
            // The error of the work is the one to report.
            let _ = connection.execute_batch("ROLLBACK");
            Err(error)
        }
    }
}

/// Returns the schema version of the database, which is 0 for an empty one.
fn check(connection: &Connection, path: &Utf8Path) -> Result<i64, StoreError> {
    let failed = StoreError::sqlite(path);
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map_err(&failed);
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(&failed)?;
    if tables == 0 {
        return Ok(0);
    }
    if number("application_id")? != APPLICATION_ID {
        let reason = "it is a SQLite database of another program".to_owned();
        return Err(StoreError::NotALedger { location: path.to_string(), reason });
    }
    let found = number("user_version")?;
    if found > SCHEMA_VERSION {
        return Err(StoreError::Newer { location: path.to_string(), found, known: SCHEMA_VERSION });
    }
    Ok(found)
}

fn create_tables(connection: &Connection, version: i64) -> rusqlite::Result<()> {
    if version == SCHEMA_VERSION {
        return Ok(());
    }
    connection.execute_batch(&create_events(Dialect::Sqlite))?;
    for table in ALL {
        connection.execute_batch(&create_table(table, Dialect::Sqlite))?;
    }
    for index in &INDEXES {
        connection.execute_batch(&create_index(index))?;
    }
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    connection.pragma_update(None, "user_version", SCHEMA_VERSION)
}
