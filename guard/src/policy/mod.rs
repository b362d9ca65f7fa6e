//! Policies: which calls are allowed, throttled, refused, and which end the run.
//!
//! ```text
//! file ─▶ document: findings with line and column ─▶ model: patterns and conditions, compiled ─▶ evaluation: decisions
//! ```
//!
//! `docs/policy.md` defines every field and the order of evaluation.

mod call;
mod decision;
mod document;
mod evaluation;
mod model;
mod responses;

pub use call::{Args, CallFacts, CallOutcome};
pub use decision::Decision;
pub use document::{InvalidPolicy, LoadPolicyError, MAX_POLICY_BYTES, POLICY_SCHEMA_SOURCE};
pub use evaluation::{Engine, Matching, RuleStep, Treatment};
pub use model::*;
pub use responses::{DenyAs, DenyCodes, Responses};
