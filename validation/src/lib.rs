//! The rules of the contract, applied: the file, JSON syntax, the schema, then the rules that a schema cannot say.
//!
//! Every rule has a [`Code`]. The rules look at the JSON value and not at the types, so that one wrong field hides no other:
//! all findings of a file are reported at once. Nothing here stops at a file that cannot be read. Only `plain` looks at types: it
//! knows an answer that has no findings, and leaves all others to the rules.

mod case;
mod code;
mod compiled_schema;
mod evaluation;
mod evidence;
mod excerpt;
mod failure;
mod file;
mod finding;
mod folder;
mod hrefs;
pub mod locate;
mod manifest;
mod meta;
mod names;
mod parse;
mod place;
mod plain;
mod quick;
mod run;
mod run_folder;
mod shape;
mod steps;
mod value;

pub use case::{CheckedCase, validate_case};
pub use code::Code;
pub use excerpt::Excerpt;
pub use finding::{Finding, MOST_FINDINGS};
pub use folder::RunFolder;
pub use place::{PathError, Report, validate_path};

pub use crate::locate::Position;
