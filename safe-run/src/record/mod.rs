//! The record of a command that has run: its events, the two formats in which it is written, and its redaction.

mod command_record;
mod cut;
mod json_lines;
mod log;
mod redact;

pub use command_record::{Ending, Event, EventKind, OutputHead, Record, StartError, StopReason};
pub use json_lines::{EVENT_SCHEMA, EVENT_SCHEMA_SOURCE};
pub use log::LogView;
pub(crate) use log::{BASE64_PREFIX, LEDGER_BEGIN, LEDGER_END, ledger_text, quote_bytes, section_header};
