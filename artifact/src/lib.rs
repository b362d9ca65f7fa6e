//! The contract: the documents of a run as types.
//!
//! One module per document ([`Run`], [`Case`], [`Manifest`], [`FailureMeta`], [`evaluation`]), the types that they share
//! (ids, hrefs, digests, counts, shares), the published schema texts ([`schema`]) and the exit codes ([`Exit`]). A value of
//! these types is well-formed: ids are safe file names, and an [`Href`] never leaves its folder.
//!
//! This crate does no I/O. `counterproof-store` reads and writes run folders, `counterproof-validation` checks documents
//! against the schemas and the rules that a schema cannot express, and `counterproof-redaction` masks secrets.
//!
//! ```
//! use counterproof_artifact::{CaseId, Href};
//!
//! assert!("refund_001".parse::<CaseId>().is_ok());
//! assert!("con.txt".parse::<CaseId>().is_err(), "a reserved name on Windows");
//! assert!("../secrets.json".parse::<Href>().is_err(), "leaves the run folder");
//! ```

// Other programs are written against this interface.
#![warn(missing_docs)]

pub mod canonical;
pub mod evaluation;
pub mod exit;
pub mod schema;

mod action;
mod case;
mod event;
mod failure;
mod href;
mod manifest;
mod name;
mod number;
pub mod pointer;
mod run;
mod share;
mod side;
mod visible_text;

pub use action::{EvidenceRef, EvidenceTarget};
pub use action::{ProposedAction, RiskLevel};
pub use canonical::Sha256Digest;
pub use case::Nullable;
pub use case::Usage;
pub use case::{
    Answer, Attempt, AttemptOutcome, Case, CaseSchema, Content, ContentType, FinalOutput, Outcome, REQUEST_ASSET_HREF,
};
pub use event::{Event, EventBody, FinalOutputEvent, Retrieval, ToolCall, ToolResult, ToolStatus};
pub use exit::Exit;
pub use failure::{FailureClass, FailureMeta, FailureMetaSchema, RunnerFailure};
pub use href::{Href, HrefError};
pub use manifest::{AssetKind, Manifest, ManifestItem, ManifestSchema};
pub use name::{CaseId, NameError, RunId};
pub use name::{CaseIds, derived_id};
pub use number::group_digits;
pub use number::{Count, Millis, Quantity};
pub use run::point_in_time;
pub use run::{Accepted, Backoff, Confirmation, Limits, PROGRAM, RetryPolicy, Run, RunSchema, ShardOf, Stats};
pub use run::{Labels, LabelsSchema};
pub use run::{Mark, REVIEW_SCHEMA_SOURCE, Review, ReviewMark, ReviewSchema};
pub use share::{Share, ShareError, ShareRangeError};
pub use side::Side;
pub use side::Sides;
pub use visible_text::{
    escape_invisible, harmless, into_visible, is_invisible, one_line, visible, with_causes, without_inline_commands,
};

/// Unknown fields of a document: preserved, and written back after the known ones.
pub type Extra = serde_json::Map<String, serde_json::Value>;
