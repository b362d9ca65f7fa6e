//! Spool files: where events are until the store has them.
//!
//! Each recorder has one file, which it locks, in a folder next to the ledger. A file without a lock belongs to a process that has
//! ended: another process moves its events to the store.

mod batch;
mod dead_spool;
mod error;
mod folder;
mod replay;

pub(crate) use batch::SpoolBatch;
pub(crate) use dead_spool::{DeadSpool, Step};
pub use error::SpoolError;
pub use folder::{SpoolFolder, SpoolState, WaitingFile};
pub use replay::{Replayed, replay};
