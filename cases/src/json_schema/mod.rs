//! `expected.json_schema`: a schema for the final output, compiled and checked within a bounded amount of work.
//!
//! A schema comes from a pull request, and an output from an agent, so both can be hostile. Data flows one way. Every part
//! of the schema gets a keyword that counts (`counted`). A walk over the references rejects schemas that are too expensive
//! at one place of a document (`cost`, `patterns`). The validator runs on values that count each access (`counting_node`),
//! and stops at the limit (`steps`, `check`). The limits
//! count work, not time, so the same schema and output give the same outcome on every machine.

mod check;
mod cost;
mod counted;
mod counting_node;
mod patterns;
mod steps;

pub use check::{JsonSchema, MAX_SCHEMA_STEPS, More, SchemaError, SchemaOutcome, Violation};
