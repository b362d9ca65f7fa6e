//! Contract files: one contract as JSON, or many as JSON Lines. Every problem is reported with its place and its remedy.

mod file;
mod rules;
mod version_diff;

pub use file::{CheckedFile, check_file};
pub use version_diff::{Change, changes};
