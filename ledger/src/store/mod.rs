//! The store of events: one interface for all databases.

mod batch;
mod error;
mod event_store;
mod run_row;

pub(crate) use batch::BatchRows;
pub use error::StoreError;
pub use event_store::{Appended, EventStore, SourceId};
pub(crate) use run_row::run_row;
