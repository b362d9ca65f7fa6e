//! The contract: what a run of an agent leaves behind on disk, as types.
//!
//! Data flows one way. Bytes become a JSON value, the value is held against its schema ([`schema`]) and against the
//! rules that a schema cannot say ([`check`]), and then becomes a type that cannot hold a bad value ([`Run`], [`Case`],
//! …). An answer that is plainly right takes a short cut from its bytes to its type. Writing goes the other way, through
//! [`store::RunWriter`] and the one atomic writer in [`mod@write`].
//!
//! This crate knows no engine: it neither runs an agent nor compares two runs.
//!
//! ```
//! use counterproof_artifact::{CaseId, Href};
//!
//! assert!("refund_001".parse::<CaseId>().is_ok());
//! assert!("con.txt".parse::<CaseId>().is_err(), "a reserved name on Windows");
//! assert!("../secrets.json".parse::<Href>().is_err(), "leaves the run folder");
//! ```

pub mod canonical;
pub mod check;
pub mod evaluation;
pub mod exit;
pub mod glob;
pub mod inside;
pub mod locate;
pub mod lock;
pub mod pointer;
pub mod redact;
pub mod schema;
pub mod spool;
pub mod store;
pub mod write;
pub mod xml;

mod action;
mod case;
mod event;
mod evidence;
mod failure;
mod href;
mod journal;
mod manifest;
mod moved;
mod name;
mod number;
mod run;
mod share;
mod side;
mod tri;

pub use action::{ProposedAction, RiskLevel};
pub use canonical::Sha256Digest;
pub use case::{Answer, Attempt, AttemptOutcome, Case, CaseSchema, Content, ContentType, FinalOutput, Outcome};
pub use event::{Event, EventBody, FinalOutputEvent, Retrieval, ToolCall, ToolResult, ToolStatus};
pub use evidence::{EvidenceRef, EvidenceTarget};
pub use exit::Exit;
pub use failure::{FailureClass, FailureMeta, FailureMetaSchema, RunnerFailure};
pub use href::{Href, HrefError};
pub use inside::ResolveError;
pub use manifest::{AssetKind, Manifest, ManifestItem, ManifestSchema};
pub use name::{CaseId, NameError, RunId};
pub use number::{Count, Millis};
pub use run::{Accepted, Backoff, Limits, PROGRAM, RetryPolicy, Run, RunSchema, ShardOf, Stats, UntilDecided};
pub use share::{Share, ShareError};
pub use side::Side;
pub use tri::Tri;

/// Fields of a document that this version does not know: kept as they were read, and written again behind the known ones.
pub type Extra = serde_json::Map<String, serde_json::Value>;
