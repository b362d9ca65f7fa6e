//! Records read back from a log or from the JSON lines of their events.

mod json_lines;
mod log;
mod parsed_record;

pub use parsed_record::{EndDetails, RecordKind, Recorded, RereadError, Wrong};
