//! The store in a SQLite file.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rusqlite::{Connection, params};

use super::append::Statements;
use super::database::{BUSY, open, open_or_create};
use crate::line::EventLine;
use crate::store::{Appended, EventStore, SourceId, StoreError};

/// A ledger in a SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    path: Utf8PathBuf,
    connection: Connection,
    statements: Statements,
}

impl SqliteStore {
    /// Opens a ledger, and creates it with its folder where it does not exist.
    pub fn open_or_create(path: &Utf8Path) -> Result<Self, StoreError> {
        Ok(Self::new(path, open_or_create(path)?))
    }

    /// Opens a ledger that exists.
    pub fn open(path: &Utf8Path) -> Result<Self, StoreError> {
        if !path.exists() {
            return Err(StoreError::Missing { location: path.to_string() });
        }
        Ok(Self::new(path, open(path)?))
    }

    fn new(path: &Utf8Path, connection: Connection) -> Self {
        Self { path: path.to_owned(), connection, statements: Statements::new() }
    }

    fn in_transaction<T>(
        &self,
        work: impl FnOnce(&Connection, &Statements) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let connection = &self.connection;
        let in_transaction = || {
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
    fn append(&mut self, events: Vec<EventLine<'_>>) -> Result<Appended, StoreError> {
        self.in_transaction(|connection, statements| statements.append(connection, events))
    }

    fn open_sources(&mut self) -> Result<Vec<SourceId>, StoreError> {
        let read = || {
            let text = "SELECT run_id, shim_id FROM run_sources WHERE ended_at IS NULL AND is_lost = 0";
            let mut statement = self.connection.prepare_cached(text)?;
            let sources = statement.query_map([], |row| Ok(SourceId { run_id: row.get(0)?, shim_id: row.get(1)? }))?;
            sources.collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(StoreError::sqlite(&self.path))
    }

    fn mark_lost(&mut self, source: &SourceId) -> Result<(), StoreError> {
        self.in_transaction(|connection, statements| {
            let text = "UPDATE run_sources SET is_lost = 1 WHERE run_id = ?1 AND shim_id = ?2 AND ended_at IS NULL";
            connection.prepare_cached(text)?.execute(params![source.run_id, source.shim_id])?;
            statements.update_run(connection, &source.run_id)
        })
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        let failed = StoreError::sqlite(&self.path);
        let connection = self.connection;
        // Other processes may use the file at this time. Then the last one copies the log into the database.
        let _ = connection.busy_timeout(Duration::ZERO);
        let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        let _ = connection.busy_timeout(BUSY);
        connection.close().map_err(|(_, error)| failed(error))
    }
}
