//! Tests of validation through the public API, on complete run folders.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod bytes;
mod document_schema;
mod documents;
mod json_schema;
mod kit;
mod places;
mod rules;
