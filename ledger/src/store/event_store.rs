//! The interface of a store.

use super::StoreError;
use crate::line::EventLine;

/// A database of events.
///
/// A store has one connection, and its calls are not concurrent. Several processes can have a store of the same database each.
pub trait EventStore: Send {
    /// Adds events in one transaction, and makes them durable. Events that the store has are skipped.
    fn append(&mut self, events: Vec<EventLine<'_>>) -> Result<Appended, StoreError>;

    /// Returns the sources that have not ended and are not known to be lost.
    fn open_sources(&mut self) -> Result<Vec<SourceId>, StoreError>;

    /// States that the process of a source has died, if no end of the source is stored.
    fn mark_lost(&mut self, source: &SourceId) -> Result<(), StoreError>;

    /// Closes the store.
    fn close(self: Box<Self>) -> Result<(), StoreError>;
}

/// A process that emitted events of a run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId {
    /// The id of the run.
    pub run_id: String,
    /// The id of the shim.
    pub shim_id: String,
}

/// The outcome of [`EventStore::append`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Appended {
    /// Number of events that were added.
    pub added: u64,
    /// Number of events that the store had already.
    pub repeated: u64,
}
