//! Checks a document against the schema of its kind, with findings that point into the text.
//!
//! The schemas are part of the program and trusted. `json_schema` checks schemas that other people wrote.

mod schema;
mod violation;

pub use schema::{CheckedDocument, DocumentSchema, DocumentText, InvalidSchema};
pub(crate) use violation::describe;
