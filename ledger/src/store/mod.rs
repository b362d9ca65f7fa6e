//! The store of events: one interface for all databases.

mod batch;
mod error;
mod event_store;
mod query;
mod run_row;

pub(crate) use batch::BatchRows;
pub use error::StoreError;
pub use event_store::{Appended, Diagnosis, EventStore, SourceId};
pub use query::Query;
pub(crate) use run_row::run_row;

pub use crate::tables::{Cell, Row};
