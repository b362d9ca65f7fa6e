//! Validation: documents and run folders against the schemas and the rules of the contract.
//!
//! Data flows one way: file → JSON (`document`) → its type, or the schema that explains why it does not fit
//! (`validate_case`, `contract_schema`) → the rules that a schema cannot express (`rules`) → [`Finding`]s with line and column.
//! Every rule has a [`Code`]. The rules work on the JSON value and not on the types, so that one wrong field hides no other: all
//! findings of a file are reported at once.
//!
//! [`DocumentSchema::check`] validates documents of other kinds, with the rules of the caller. [`json_schema`] checks values
//! against schemas that other people wrote, within limits.
//!
//! ```
//! use counterproof_validation::{Code, validate_case};
//! use serde_json::json;
//!
//! let findings = validate_case(&json!({"schema_version": "case.v2"}));
//! assert_eq!(findings[0].code, Code::UnknownSchemaVersion);
//! assert_eq!(findings[0].pointer, "/schema_version");
//! ```

pub mod json_schema;
pub mod yaml;

mod contract_schema;
mod document;
mod document_schema;
mod finding;
mod finding_code;
mod rules;
mod run_folder;
mod validate_case;
mod validate_path;
mod validate_run;

pub use counterproof_json_text::{self as locate, Position};
pub use document::DocumentFormat;
pub use document_schema::{CheckedDocument, DocumentSchema, DocumentText, InvalidSchema};
pub use finding::Excerpt;
pub use finding::nearest;
pub use finding::{Finding, MAX_FINDINGS, RuleFinding};
pub use finding_code::Code;
pub use run_folder::RunFolder;
pub use validate_case::{CheckedCase, validate_case};
pub use validate_path::{PathError, Report, validate_path};
