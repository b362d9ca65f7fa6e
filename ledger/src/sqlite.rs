//! The store in a SQLite file: the default, which needs no server.

use std::thread;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::one_line;
use counterproof_store::write;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension as _, Result, ToSql, params, params_from_iter};

use crate::line::EventLine;
use crate::location::real_path;
use crate::store::{AppendResult, BatchRows, Cell, Check, EventStore, Query, Row, SourceId, StoreError, run_row};
use crate::tables::{
    ALL, Dialect, INDEXES, MergedRows, RUN_SOURCES, RUNS, SCHEMA_VERSION, Table, create_events, create_index,
    create_table, on_conflict,
};

#[derive(Debug)]
pub struct SqliteStore {
    path: Utf8PathBuf,
    connection: Connection,
    statements: Statements,
    identity: FileIdentity,
    access: Access,
}

impl SqliteStore {
    /// Opens a ledger, and creates it with its folder where it does not exist.
    pub fn open_or_create(path: &Utf8Path) -> Result<Self, StoreError> {
        Ok(Self::new(path, open_or_create(path)?, Access::ReadWrite))
    }

    /// Opens a ledger that exists. A file that cannot be written is opened for reading only.
    pub fn open(path: &Utf8Path) -> Result<Self, StoreError> {
        if !path.exists() {
            return Err(StoreError::Missing { location: path.to_string() });
        }
        let (connection, access) = open(path)?;
        Ok(Self::new(path, connection, access))
    }

    fn new(path: &Utf8Path, connection: Connection, access: Access) -> Self {
        let identity = FileIdentity::of(path);
        Self { path: path.to_owned(), connection, statements: Statements::new(), identity, access }
    }

    fn in_transaction<T>(
        &self,
        work: impl FnOnce(&Connection, &Statements) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        // SQLite would continue to write to a file that was removed.
        if !self.identity.is_of(&self.path) {
            return Err(StoreError::Replaced { location: self.path.to_string() });
        }
        let connection = &self.connection;
        let in_transaction = || {
            // Immediate: a transaction that first reads and then writes can fail when another process writes in between, and SQLite
            // does not wait then.
            connection.execute_batch("BEGIN IMMEDIATE")?;
            match work(connection, &self.statements) {
                Ok(value) => connection.execute_batch("COMMIT").map(|()| value),
                Err(error) => {
                    // The database may have ended the transaction itself. The error of the work is the one to report.
                    let _ = connection.execute_batch("ROLLBACK");
                    Err(error)
                }
            }
        };
        in_transaction().map_err(StoreError::sqlite(&self.path))
    }
}

impl EventStore for SqliteStore {
    fn is_read_only(&self) -> bool {
        self.access == Access::ReadOnly
    }

    fn append(&mut self, events: &[EventLine<'_>]) -> Result<AppendResult, StoreError> {
        self.in_transaction(|connection, statements| statements.append(connection, events))
    }

    fn mark_lost(&mut self, source: &SourceId) -> Result<(), StoreError> {
        self.in_transaction(|connection, statements| {
            let text = "UPDATE run_sources SET is_lost = 1 WHERE run_id = ?1 AND shim_id = ?2 AND ended_at IS NULL";
            connection.prepare_cached(text)?.execute(params![source.run_id, source.shim_id])?;
            statements.update_run(connection, &source.run_id)
        })
    }

    fn select(&mut self, query: &Query) -> Result<Vec<Row<'static>>, StoreError> {
        let select = || {
            let mut statement = self.connection.prepare_cached(query.text())?;
            let columns = statement.column_count();
            let rows = statement.query_map(params_from_iter(query.values()), |row| read(row, columns))?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        select().map_err(StoreError::sqlite(&self.path))
    }

    fn change(&mut self, statements: &[Query]) -> Result<u64, StoreError> {
        self.in_transaction(|connection, _| {
            let mut changed = 0;
            for query in statements {
                let mut statement = connection.prepare_cached(query.text())?;
                changed += statement.execute(params_from_iter(query.values()))? as u64;
            }
            Ok(changed)
        })
    }

    fn has_table(&mut self, name: &str) -> Result<bool, StoreError> {
        self.connection.table_exists(None, name).map_err(StoreError::sqlite(&self.path))
    }

    fn compact(&mut self) -> Result<(), StoreError> {
        self.connection.execute_batch("VACUUM").map_err(StoreError::sqlite(&self.path))?;
        checkpoint(&self.connection);
        Ok(())
    }

    fn diagnose(&mut self) -> Result<Vec<Check>, StoreError> {
        diagnose(&self.connection, self.access).map_err(StoreError::sqlite(&self.path))
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        let failed = StoreError::sqlite(&self.path);
        checkpoint(&self.connection);
        self.connection.close().map_err(|(_, error)| failed(error))
    }
}

/// Copies the log into the database, unless other processes use the file. Then the last one does it.
fn checkpoint(connection: &Connection) {
    // Without a timeout: a process that ends must not wait for another one that reads.
    let _ = connection.busy_timeout(Duration::ZERO);
    let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    let _ = connection.busy_timeout(BUSY);
}

#[derive(Debug)]
struct Statements {
    upserts: Vec<(&'static str, String)>,
    sources: String,
}

impl Statements {
    fn new() -> Self {
        let upserts = crate::tables::ALL.iter().map(|table| (table.name, upsert(table))).collect();
        let sources = format!("SELECT {} FROM run_sources WHERE run_id = ?1", RUN_SOURCES.column_names());
        Self { upserts, sources }
    }

    fn append(&self, connection: &Connection, events: &[EventLine<'_>]) -> Result<AppendResult> {
        let mut appended = AppendResult::default();
        let mut new = Vec::with_capacity(events.len());
        let text =
            "INSERT INTO events (run_id, shim_id, seq, digest, type, ts, line) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                    ON CONFLICT DO NOTHING";
        let mut insert = connection.prepare_cached(text)?;
        for event in events {
            // A batch takes milliseconds. On a busy machine the threads that forward messages go first.
            thread::yield_now();
            let values = params![
                event.run_id(),
                event.shim_id(),
                event.seq(),
                event.digest(),
                event.kind(),
                event.ts(),
                event.line()
            ];
            if insert.execute(values)? == 0 {
                appended.repeated += 1;
            } else {
                appended.added += 1;
                new.push(event);
            }
        }
        // Only of new events: one that is added again must not change a row, and the batch of a repeated replay costs little.
        let rows = BatchRows::new(&new);
        for table in &rows.tables {
            self.upsert(connection, table)?;
        }
        for run in &rows.runs {
            self.update_run(connection, run)?;
        }
        Ok(appended)
    }

    /// Computes the row of a run anew.
    fn update_run(&self, connection: &Connection, run_id: &str) -> Result<()> {
        let mut statement = connection.prepare_cached(&self.sources)?;
        let sources: Vec<Row<'static>> =
            statement.query_map([run_id], |row| read(row, RUN_SOURCES.columns.len()))?.collect::<Result<_>>()?;
        // From all its sources and not only from new events: the earliest identity and the worst status need all of them.
        let row = run_row(&sources).into_iter().collect();
        self.upsert(connection, &MergedRows::new(&RUNS, row))
    }

    fn upsert(&self, connection: &Connection, rows: &MergedRows<'_>) -> Result<()> {
        let name = rows.table.name;
        let Some((_, text)) = self.upserts.iter().find(|(table, _)| *table == name) else { return Ok(()) };
        let mut statement = connection.prepare_cached(text)?;
        for row in &rows.rows {
            statement.execute(params_from_iter(row.cells()))?;
        }
        Ok(())
    }
}

fn upsert(table: &Table) -> String {
    let values: Vec<_> = (1..=table.columns.len()).map(|number| format!("?{number}")).collect();
    let (name, columns) = (table.name, table.column_names());
    let conflict = on_conflict(table, Dialect::Sqlite);
    format!("INSERT INTO {name} ({columns}) VALUES ({}) {conflict}", values.join(", "))
}

fn read(row: &rusqlite::Row<'_>, columns: usize) -> Result<Row<'static>> {
    (0..columns).map(|number| cell(row, number)).collect::<Result<Vec<_>>>().map(Row::from_cells)
}

fn cell(row: &rusqlite::Row<'_>, number: usize) -> Result<Cell<'static>> {
    use rusqlite::types::Value;

    Ok(match row.get(number)? {
        Value::Integer(number) => Cell::Integer(number),
        Value::Text(text) => Cell::from(text),
        // The tables have neither. Another program may have written them.
        Value::Null | Value::Real(_) | Value::Blob(_) => Cell::Null,
    })
}

impl ToSql for Cell<'_> {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        match self {
            Cell::Null => rusqlite::types::Null.to_sql(),
            Cell::Integer(number) => number.to_sql(),
            Cell::Text(text) => Ok(ToSqlOutput::from(&**text)),
        }
    }
}

const LISTED: usize = 5;

fn diagnose(connection: &Connection, access: Access) -> Result<Vec<Check>> {
    let mut found = vec![integrity(connection)?];
    // Only writers depend on the mode, and a protected file is read in another one.
    if access == Access::ReadWrite {
        found.push(journal_mode(connection)?);
    }
    found.push(schema_version(connection)?);
    Ok(found)
}

fn integrity(connection: &Connection) -> Result<Check> {
    let mut statement = connection.prepare("PRAGMA integrity_check")?;
    let findings: Vec<String> = statement.query_map([], |row| row.get(0))?.take(LISTED).collect::<Result<_>>()?;
    let is_well = findings == ["ok"];
    let remedy = "restore a backup, or move the file away and ingest an export of its events with `ledger ingest`";
    let remedy = (!is_well).then(|| remedy.to_owned());
    Ok(Check { name: "integrity", found: findings.join("; "), remedy })
}

fn journal_mode(connection: &Connection) -> Result<Check> {
    let found: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    let remedy =
        (found != "wal").then(|| "move the ledger to a local disk: its file system has no shared memory".into());
    Ok(Check { name: "journal_mode", found, remedy })
}

fn schema_version(connection: &Connection) -> Result<Check> {
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let remedy = (found != SCHEMA_VERSION).then(|| format!("this program writes version {SCHEMA_VERSION}"));
    Ok(Check { name: "schema_version", found: found.to_string(), remedy })
}

/// How long a statement waits for other processes. Each holds the lock for one batch.
const BUSY: Duration = Duration::from_secs(5);

/// Identifies the file as a ledger: the letters `CPLg`.
const APPLICATION_ID: i64 = 0x4350_4c67;

/// Pages of the log after which SQLite copies them into the database: about 16 MB.
const CHECKPOINT_PAGES: i64 = 4000;

const STATEMENTS: usize = 64;

/// Characters of a path that have another meaning in a URI.
const IN_URI: &AsciiSet = &CONTROLS.add(b'%').add(b'?').add(b'#');

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    ReadWrite,
    ReadOnly,
}

fn open_or_create(path: &Utf8Path) -> Result<Connection, StoreError> {
    reject_folder(path)?;
    // The target of a link may not exist.
    let file = real_path(path);
    if let Some(folder) = file.parent() {
        // Before the file, so that no other user can open it in between: it has previews of arguments and results.
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

fn open(path: &Utf8Path) -> Result<(Connection, Access), StoreError> {
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

/// Opens a ledger whose file or folder is protected from writing.
fn open_protected(path: &Utf8Path) -> Result<Connection, StoreError> {
    // First with the log of changes, which needs its shared memory; below without.
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
        // Several processes write to one ledger. Each holds the lock for one batch.
        connection.busy_timeout(BUSY)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        // `--ledger` may name a file of anyone: functions in its schema must not be called.
        connection.pragma_update(None, "trusted_schema", false)?;
        Ok(connection)
    };
    connect().map_err(StoreError::sqlite(path))
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    // Readers, such as `ledger tail`, do not wait for writers.
    connection.pragma_update(None, "journal_mode", "wal")?;
    // Each commit is on disk when it returns.
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)
}

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
    // `--ledger` may name any file of the user. A database of another program must stay as it is.
    if number("application_id")? != APPLICATION_ID {
        return Err(other("it is a SQLite database of another program"));
    }
    // They run SQL of the author of the file, and can change or hide what is written.
    let sql = "SELECT name FROM sqlite_schema WHERE type IN ('view', 'trigger') LIMIT 1";
    if let Some(name) = connection.query_row(sql, [], |row| row.get::<_, String>(0)).optional().map_err(&failed)? {
        return Err(other(&format!(
            "it has the view or trigger `{}`, and a ledger has none",
            one_line(&name, MAX_NAME)
        )));
    }
    let found = number("user_version")?;
    // A newer program may store what this one would overwrite.
    if found > SCHEMA_VERSION {
        return Err(StoreError::Newer { location: path.to_string(), found, known: SCHEMA_VERSION });
    }
    Ok(Some(found))
}

/// Most characters of the name of a view or a trigger in a message.
const MAX_NAME: usize = 60;

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

/// The device and the number of the file that a path names. `None` if there is no file.
#[derive(Debug)]
struct FileIdentity(Option<(u64, u64)>);

impl FileIdentity {
    #[cfg(unix)]
    fn of(path: &Utf8Path) -> Self {
        use std::os::unix::fs::MetadataExt as _;

        Self(path.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino())))
    }

    /// Other systems do not remove a file that is open.
    #[cfg(not(unix))]
    fn of(_path: &Utf8Path) -> Self {
        Self(Some((0, 0)))
    }

    /// Returns true if the path names the same file now.
    fn is_of(&self, path: &Utf8Path) -> bool {
        self.0.is_some() && Self::of(path).0 == self.0
    }
}
