//! The store of sessions: records, and what they have in common, in the database of the ledger.
//!
//! ```text
//! records ─▶ encoder: large texts and histories apart, secrets masked ─▶ one transaction ─▶ tables
//! tables  ─▶ decoder: whole texts again ─▶ pages of records, sums
//! ```

mod archive;
mod checkpoints;
mod decode;
mod prune;
mod read;
mod schema;
mod session_store;
mod stored;

pub use archive::{Archive, ArchiveError};
pub use checkpoints::{CheckpointPage, CheckpointSummary};
pub use prune::StoreUsage;
pub use read::{CursorError, EventFilter, EventPage, SessionOverview, SessionPage, SessionSummary, TokenSums};
pub use session_store::{AddError, SessionStore};
pub(crate) use session_store::{Batch, HeadRow};
pub(crate) use stored::{Encoder, StoredEvents};
pub use stored::{MASK, redactor};
