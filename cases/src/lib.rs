//! The cases file: what is asked of an agent, and what is expected of it.
//!
//! Data flows one way. A path becomes a list of files, a file becomes documents (JSON, YAML or one JSON value a line), a
//! document becomes [`CaseSpec`]s, and these become one [`Suite`] in which every id is there once. Whatever is wrong on
//! the way is told with file, line, column, field and remedy, and everything that is wrong is told at once.
//!
//! This crate neither asks an agent nor judges an answer.
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

mod document;
mod expect;
mod fields;
mod interpret;
mod json_schema;
mod load;
mod positions;
mod problem;
mod spec;

pub use expect::{Expect, VARIABLES};
pub use json_schema::{SchemaError, validator};
pub use load::{Place, Suite, load, places};
pub use problem::{LoadError, Marked, Problem};
pub use spec::{CaseSpec, Expected, Input, Metadata, RetrievalRequired};
