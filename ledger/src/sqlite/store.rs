//! The store in a SQLite file.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rusqlite::{Connection, params, params_from_iter};

use super::append::{Statements, read};
use super::database::{Access, BUSY, open, open_or_create};
use super::diagnosis::diagnose;
use super::file_identity::FileIdentity;
use crate::line::EventLine;
use crate::store::{Appended, Diagnosis, EventStore, Query, Row, SourceId, StoreError};

/// A ledger in a SQLite file.
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

    /// Opens a ledger that exists. If it cannot be written, it can be read.
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

    fn append(&mut self, events: &[EventLine<'_>]) -> Result<Appended, StoreError> {
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

    fn compact(&mut self) -> Result<(), StoreError> {
        self.connection.execute_batch("VACUUM").map_err(StoreError::sqlite(&self.path))?;
        checkpoint(&self.connection);
        Ok(())
    }

    fn diagnose(&mut self) -> Result<Vec<Diagnosis>, StoreError> {
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
    let _ = connection.busy_timeout(Duration::ZERO);
    let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    let _ = connection.busy_timeout(BUSY);
}
