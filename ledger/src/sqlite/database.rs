//! Opens the SQLite file of a ledger, and creates its tables.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::write;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::location::real_path;
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

/// Characters of a path that have another meaning in a URI.
const IN_URI: &AsciiSet = &CONTROLS.add(b'%').add(b'?').add(b'#');

/// What can be done with a ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Its file and its folder can be written.
    ReadWrite,
    /// They are protected.
    ReadOnly,
}

/// Opens a ledger for writing, and creates it where it does not exist.
pub(super) fn open_or_create(path: &Utf8Path) -> Result<Connection, StoreError> {
    reject_folder(path)?;
    // The target of a link may not exist.
    let file = real_path(path);
    if let Some(folder) = file.parent() {
        write::create_private_folder(folder)?;
    }
    // SQLite gives its other files the same mode.
    write::create_private_file(&file)?;
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let version = check(&connection, path)?;
    configure(&connection).map_err(StoreError::sqlite(path))?;
    if version != Some(SCHEMA_VERSION) {
        create(&connection, path)?;
    }
    Ok(connection)
}

/// Opens a ledger that exists. If it cannot be written, it can be read.
pub(super) fn open(path: &Utf8Path) -> Result<(Connection, Access), StoreError> {
    reject_folder(path)?;
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let opened = require(&connection, path)
        .and_then(|()| configure(&connection).map_err(StoreError::sqlite(path)))
        .map(|()| (connection, Access::ReadWrite));
    match opened {
        Err(error) if is_protected(&error) => Ok((open_protected(path)?, Access::ReadOnly)),
        opened => opened,
    }
}

/// SQLite only states that it cannot open a folder.
fn reject_folder(path: &Utf8Path) -> Result<(), StoreError> {
    if !path.is_dir() {
        return Ok(());
    }
    let reason = format!("it is a folder, and a ledger is a file, such as `{}`", path.join("ledger.db"));
    Err(StoreError::NotALedger { location: path.to_string(), reason })
}

/// Opens a ledger that cannot be written, because its file or its folder is protected.
fn open_protected(path: &Utf8Path) -> Result<Connection, StoreError> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let is_readable = require(&connection, path);
    let log = Utf8PathBuf::from(format!("{}-wal", real_path(path)));
    match is_readable {
        Ok(()) => Ok(connection),
        // Without a log of changes, all of the ledger is in the file. SQLite needs no other file then.
        Err(error) if is_protected(&error) && log.metadata().map_or(true, |metadata| metadata.len() == 0) => {
            let uri = format!("file:{}?immutable=1", utf8_percent_encode(real_path(path).as_str(), IN_URI));
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
            let connection = connect(Utf8Path::new(&uri), flags)?;
            require(&connection, path).map(|()| connection)
        }
        Err(error) => Err(error),
    }
}

fn is_protected(error: &StoreError) -> bool {
    let StoreError::Sqlite { source, .. } = error else { return false };
    let codes = [ErrorCode::ReadOnly, ErrorCode::CannotOpen, ErrorCode::PermissionDenied];
    source.sqlite_error_code().is_some_and(|code| codes.contains(&code))
}

fn connect(path: &Utf8Path, flags: OpenFlags) -> Result<Connection, StoreError> {
    let connect = || {
        let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        connection.busy_timeout(BUSY)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        Ok(connection)
    };
    connect().map_err(StoreError::sqlite(path))
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "wal")?;
    // Each commit is on disk when it returns.
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)
}

/// Checks that there are tables.
fn require(connection: &Connection, path: &Utf8Path) -> Result<(), StoreError> {
    match check(connection, path)? {
        Some(_) => Ok(()),
        None => Err(StoreError::Missing { location: path.to_string() }),
    }
}

fn create(connection: &Connection, path: &Utf8Path) -> Result<(), StoreError> {
    let failed = StoreError::sqlite(path);
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

/// Returns the schema version of the database. Returns `None` if there are no tables.
fn check(connection: &Connection, path: &Utf8Path) -> Result<Option<i64>, StoreError> {
    let failed = StoreError::sqlite(path);
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map_err(&failed);
    let other = |reason: &str| StoreError::NotALedger { location: path.to_string(), reason: reason.to_owned() };
    let tables = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0));
    match tables {
        Ok(0) => return Ok(None),
        Ok(_) => {}
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
            return Err(other("it is not a SQLite database"));
        }
        Err(error) => return Err(failed(error)),
    }
    if number("application_id")? != APPLICATION_ID {
        return Err(other("it is a SQLite database of another program"));
    }
    let found = number("user_version")?;
    if found > SCHEMA_VERSION {
        return Err(StoreError::Newer { location: path.to_string(), found, known: SCHEMA_VERSION });
    }
    Ok(Some(found))
}

fn create_tables(connection: &Connection, version: Option<i64>) -> rusqlite::Result<()> {
    if version == Some(SCHEMA_VERSION) {
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
