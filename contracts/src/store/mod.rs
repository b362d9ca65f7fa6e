//! The store: contracts and their transitions in one append-only JSON Lines file.
//!
//! Each version of a contract is one line with the fields of the contract. Every other line has a field `record`, which
//! names its kind: a transition or a note. A command reads the whole file once for the states, and single lines in full.

mod contract_store;
mod editor;
mod error;
mod record;
mod states;

pub use contract_store::{Compacted, CompactionPlan, Store};
pub(crate) use editor::find_cycle;
pub use editor::{Added, Editor, NewTransition, Then};
pub(crate) use error::path as path_of_ids;
pub use error::{Contradiction, StoreError};
pub use record::{History, Note, NoteKind, Record, RecordError, VersionHistory};
pub use states::Status;
