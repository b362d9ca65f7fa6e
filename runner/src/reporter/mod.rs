//! Reporters of run events: JSON Lines, plain text, and none. The caller passes the output in.

mod json_lines;
mod plain;
mod silent;

pub use json_lines::JsonLines;
pub use plain::Plain;
pub use silent::Silent;
