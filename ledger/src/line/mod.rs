//! A line of events, as any producer writes it: what identifies the event, and the rows that follow from it.
//!
//! Lines are read leniently. Only the fields that identify an event are required. An event whose other fields have an unexpected
//! shape is stored as a line, without rows.

mod event_line;
mod rows;

pub(crate) use event_line::is_id;
pub use event_line::{EventLine, LineError, sortable_time};
