//! The cases file: inputs for an agent, and the expectations for its answers.
//!
//! Data flows one way. A path becomes a list of files, a file becomes documents (JSON, YAML, or one JSON value per line), a
//! document becomes [`CaseSpec`]s, and these become one [`Suite`] with unique ids. All problems of a suite are reported at
//! once, each with file, line, column, field and remedy.
//!
//! This crate does not call an agent and does not evaluate an answer.
//!
//! ```
//! # use camino::Utf8Path;
//! let folder = tempfile::tempdir().unwrap();
//! let path = Utf8Path::from_path(folder.path()).unwrap().join("cases.yaml");
//! # #[allow(clippy::disallowed_methods)]
//! std::fs::write(&path, "- id: refund_001\n  input: {user: Where is my money?}\n").unwrap();
//!
//! let suite = counterproof_cases::load(&path).unwrap();
//! assert_eq!(suite.cases[0].id.as_str(), "refund_001");
//! assert_eq!(suite.cases[0].input.user, "Where is my money?");
//! ```

pub mod draft;
pub mod glob;

mod digest;
mod document;
mod fields;
mod load;
mod shard;
mod spec;

/// The JSON Schema `cases.v1` of cases files.
pub const CASES_SCHEMA_SOURCE: &str = include_str!("../../schemas/cases.v1.schema.json");

pub use digest::{cases_digest, value_digest};
pub use fields::{Expect, VARIABLES};
pub use load::{CaseLocation, Suite, load, locate};
pub use load::{LoadError, Marked, Problem};
pub use shard::{Shard, ShardError};
pub use spec::{CaseSpec, Expected, Input, Metadata, RetrievalRequired, Turn};
