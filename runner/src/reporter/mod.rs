//! Reporters: what is shown of the events of a run. Where it goes is decided by the caller.

mod json_lines;
mod plain;
mod silent;

pub use json_lines::JsonLines;
pub use plain::Plain;
pub use silent::Silent;
