//! Reads a record back from its log or from the JSON lines of its events. A record that is incomplete or inconsistent is an error
//! that names the line; a partial record is never returned.

mod assemble;
mod error;
mod event;
mod json_fields;
mod json_lines;
mod log;
mod record_file;
#[cfg(test)]
mod tests;

pub use error::{LineError, ReadError};
pub use event::EndDetails;
pub use record_file::{ParsedRecord, RecordFormat};
