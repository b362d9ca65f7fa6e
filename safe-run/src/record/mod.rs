//! The record of a command that has run: its events, the two formats in which it is written, and its redaction.

mod command_record;
mod event;
mod json_lines;
mod log;
mod output_parts;
mod redact;
mod shell;

pub use command_record::{Ending, Record, StartError, StopReason};
pub use event::{Event, EventKind};
pub use json_lines::{EVENT_SCHEMA, EVENT_SCHEMA_SOURCE};
pub use log::LogView;
pub(crate) use log::{BASE64_PREFIX, LEDGER_BEGIN, LEDGER_END, ledger_text, section_header};
pub use output_parts::OutputHead;
pub(crate) use shell::quote_bytes;
