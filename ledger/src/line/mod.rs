//! A line of events, as any producer writes it: what identifies the event, and the rows that follow from it.
//!
//! Lines are read leniently. Only the fields that identify an event are required. An event whose other fields have an unexpected
//! shape is stored as a line, without rows.

mod event_line;
mod identity;
mod rows;

pub use event_line::EventLine;
pub(crate) use identity::is_id;
pub use identity::{LineError, sortable_time};
