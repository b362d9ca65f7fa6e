//! The store in a PostgreSQL database.

use std::fmt;

use postgres::types::ToSql;
use postgres::{Client, Error, Transaction};

use super::append::{append, update_runs};
use super::cells;
use super::connect::connect;
use super::database::{Tables, lock, prepare};
use super::diagnosis::diagnose;
use crate::line::EventLine;
use crate::location::PostgresUrl;
use crate::store::{Appended, Cell, Diagnosis, EventStore, Query, Row, SourceId, StoreError};
use crate::tables::ALL;

/// A ledger in a PostgreSQL database.
pub struct PostgresStore {
    url: PostgresUrl,
    client: Client,
}

impl PostgresStore {
    /// Opens a ledger, and creates its tables where they do not exist.
    pub fn open_or_create(url: &PostgresUrl) -> Result<Self, StoreError> {
        Self::new(url, Tables::Created)
    }

    /// Opens a ledger that exists.
    pub fn open(url: &PostgresUrl) -> Result<Self, StoreError> {
        Self::new(url, Tables::Required)
    }

    fn new(url: &PostgresUrl, tables: Tables) -> Result<Self, StoreError> {
        let mut client = connect(url)?;
        prepare(&mut client, url, tables)?;
        Ok(Self { url: url.clone(), client })
    }

    /// Does work in a transaction, while other writers wait.
    fn write<T>(&mut self, work: impl FnOnce(&mut Transaction<'_>) -> Result<T, Error>) -> Result<T, StoreError> {
        let write = || {
            let mut transaction = self.client.transaction()?;
            lock(&mut transaction)?;
            let done = work(&mut transaction)?;
            transaction.commit()?;
            Ok(done)
        };
        write().map_err(StoreError::postgres(&self.url))
    }
}

impl EventStore for PostgresStore {
    /// The rights of a role are not known before it uses them.
    fn is_read_only(&self) -> bool {
        false
    }

    fn append(&mut self, events: &[EventLine<'_>]) -> Result<Appended, StoreError> {
        self.write(|transaction| append(transaction, events))
    }

    fn mark_lost(&mut self, source: &SourceId) -> Result<(), StoreError> {
        let SourceId { run_id, shim_id } = source;
        let text = "UPDATE run_sources SET is_lost = 1 WHERE run_id = $1 AND shim_id = $2 AND ended_at IS NULL";
        self.write(|transaction| {
            transaction.execute(text, &[run_id, shim_id])?;
            update_runs(transaction, &[run_id])
        })
    }

    fn select(&mut self, query: &Query) -> Result<Vec<Row<'static>>, StoreError> {
        let mut select = || {
            let found = self.client.query(&text(query), &values(query))?;
            found.iter().map(cells::row).collect::<Result<Vec<_>, Error>>()
        };
        select().map_err(StoreError::postgres(&self.url))
    }

    fn change(&mut self, statements: &[Query]) -> Result<u64, StoreError> {
        self.write(|transaction| {
            let mut changed = 0;
            for query in statements {
                changed += transaction.execute(&text(query), &values(query))?;
            }
            Ok(changed)
        })
    }

    fn compact(&mut self) -> Result<(), StoreError> {
        // One by one: several statements in one message are a transaction, in which VACUUM fails.
        let failed = StoreError::postgres(&self.url);
        let mut tables = ALL.iter().map(|table| table.name).chain(["events"]);
        tables.try_for_each(|table| self.client.batch_execute(&format!("VACUUM {table}"))).map_err(failed)
    }

    fn diagnose(&mut self) -> Result<Vec<Diagnosis>, StoreError> {
        diagnose(&mut self.client).map_err(StoreError::postgres(&self.url))
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        self.client.close().map_err(StoreError::postgres(&self.url))
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresStore({})", self.url)
    }
}

/// Returns a statement with the placeholders of PostgreSQL.
fn text(query: &Query) -> String {
    query.text().replace('?', "$")
}

fn values(query: &Query) -> Vec<&(dyn ToSql + Sync)> {
    query.values().iter().map(|value: &Cell| value as &(dyn ToSql + Sync)).collect()
}
