//! A finished command: its record, the events, and the two formats in which it is written.

mod command_record;
mod event;
mod json_lines;
mod log;
mod redact;
mod shell;
mod tail;

pub use command_record::{Ending, Record, StartError};
#[cfg(test)]
pub(crate) use event::lines;
pub use event::{Event, EventKind, Line, LineEnd};
pub use json_lines::{EVENT_SCHEMA, EVENT_SCHEMA_SOURCE};
pub use log::{BASE64, View};
pub(crate) use log::{BEGIN, END, header, text_of};
pub(crate) use shell::quote_bytes;
