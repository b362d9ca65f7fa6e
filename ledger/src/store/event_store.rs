//! The interface of a store.

use super::{Query, Row, StoreError};
use crate::line::EventLine;

/// A database of events.
///
/// A store has one connection, and its calls are not concurrent. Several processes can have a store of the same database each.
pub trait EventStore: Send {
    /// Returns true if the ledger can be read and not be written, because its files are protected.
    fn is_read_only(&self) -> bool;

    /// Adds events in one transaction, and makes them durable. Events that the store has are skipped.
    fn append(&mut self, events: &[EventLine<'_>]) -> Result<Appended, StoreError>;

    /// Records that the process of a source has ended without `run_end`.
    fn mark_lost(&mut self, source: &SourceId) -> Result<(), StoreError>;

    fn select(&mut self, query: &Query) -> Result<Vec<Row<'static>>, StoreError>;

    /// Runs statements that change rows in one transaction. Returns the number of rows that changed.
    fn change(&mut self, statements: &[Query]) -> Result<u64, StoreError>;

    /// Returns the space of deleted rows to the system.
    fn compact(&mut self) -> Result<(), StoreError>;

    /// Examines the database.
    fn diagnose(&mut self) -> Result<Vec<Diagnosis>, StoreError>;

    fn close(self: Box<Self>) -> Result<(), StoreError>;
}

/// A process that emitted events of a run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId {
    pub run_id: String,
    pub shim_id: String,
}

/// A fact about a database that matters for its safety.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    pub name: &'static str,
    pub found: String,
    /// What to do about it. `None` if all is well.
    pub remedy: Option<String>,
}

/// The outcome of [`EventStore::append`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Appended {
    /// Number of events that were added.
    pub added: u64,
    /// Number of events that the store had already.
    pub repeated: u64,
}
