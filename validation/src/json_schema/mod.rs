//! JSON Schemas that other people wrote, compiled and checked within a bounded amount of work.
//!
//! A schema comes from a pull request, and a document from an agent, so both can be hostile. Data flows one way. A walk over the
//! references rejects schemas that are too expensive at one place of a document (`limits`). Every part of the schema gets a keyword
//! that counts, and the validator runs on values that count each access (`budget`), until the limit (`check`). The limits count
//! work, not time, so the same schema and document give the same outcome on every machine. The schemas of the contract are
//! trusted and checked without limits, by `contract_schema`.

mod budget;
mod check;
mod limits;

pub use check::{JsonSchema, MAX_SCHEMA_STEPS, More, SchemaError, SchemaOutcome, Violation};
