//! A line of events, as any producer writes it: what identifies the event, and the rows that follow from it.
//!
//! Lines are read leniently. Only the fields that identify an event are required. An event whose other fields have an unexpected
//! shape is stored as a line, without rows.

mod error;
mod event_line;
mod fields;
mod identity;
mod rows;
mod texts;

pub use error::LineError;
pub use event_line::EventLine;
pub(crate) use texts::is_id;
pub use texts::sortable_time;
