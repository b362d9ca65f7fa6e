//! Opens the store of a location.

use crate::location::LedgerLocation;
use crate::postgres::PostgresStore;
use crate::sqlite::SqliteStore;
use crate::store::{EventStore, StoreError};

pub fn open_or_create(location: &LedgerLocation) -> Result<Box<dyn EventStore>, StoreError> {
    match location {
        LedgerLocation::SqliteFile(path) => Ok(Box::new(SqliteStore::open_or_create(path)?)),
        LedgerLocation::PostgreSql(url) => Ok(Box::new(PostgresStore::open_or_create(url)?)),
    }
}

/// Opens a ledger that exists. A SQLite file that cannot be written is opened for reading only.
pub fn open(location: &LedgerLocation) -> Result<Box<dyn EventStore>, StoreError> {
    match location {
        LedgerLocation::SqliteFile(path) => Ok(Box::new(SqliteStore::open(path)?)),
        LedgerLocation::PostgreSql(url) => Ok(Box::new(PostgresStore::open(url)?)),
    }
}
