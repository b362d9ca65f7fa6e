//! Reads a record back from its log or from the JSON lines of its events. A record that is incomplete or inconsistent is an error
//! that names the line; a partial record is never returned.

mod error;
mod json_lines;
mod record_file;
#[cfg(test)]
mod tests;

pub use error::{LineError, ReadError};
pub use record_file::{EndDetails, ParsedRecord, RecordFormat};
