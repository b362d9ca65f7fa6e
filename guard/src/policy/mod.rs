//! Policies: which calls are allowed, throttled, refused, and which end the run.
//!
//! ```text
//! file ─▶ document: findings with line and column ─▶ model: patterns and conditions, compiled ─▶ evaluation: decisions
//! ```
//!
//! `docs/policy.md` defines every field and the order of evaluation.

mod call;
mod decision;
mod diff;
mod document;
mod dry_run;
mod evaluation;
mod lint;
mod model;
mod responses;
mod testing;

pub use call::{Args, CallFacts, CallOutcome, ReadSample, RequestFacts, SampleCall};
pub use decision::Decision;
pub use diff::{FieldChange, PolicyDiff, RuleChange, diff};
pub use document::{InvalidPolicy, LoadPolicyError, MAX_POLICY_BYTES, POLICY_SCHEMA_SOURCE, PolicyFile};
pub use dry_run::{DryRun, DryRunDifference, LineProblem, ObservedCalls, dry_run};
pub use evaluation::{Engine, Matching, RuleStep, Treatment};
pub use lint::{LintCode, Linted, Warning, lint};
pub use model::*;
pub use responses::{DenyAs, DenyCodes, Responses};
pub use testing::{TEST_SCHEMA_SOURCE, TestReport, TestResult, test};
