//! The lines of a store: contracts, transitions and notes.

mod note;
mod record_line;

pub use note::{Note, NoteKind};
pub use record_line::{Record, RecordError};
