//! Policies: which calls are allowed, throttled, refused, and which end the run.
//!
//! ```text
//! file ─▶ document: findings with line and column ─▶ model: patterns and conditions, compiled ─▶ decide: decisions
//! ```
//!
//! `docs/policy.md` defines every field and the order of evaluation.

mod call;
mod candidates;
mod counters;
mod decide;
mod decision_record;
mod diff;
mod document;
mod dry_run;
mod lint;
mod model;
mod testing;

pub use call::{Args, CallFacts, CallOutcome, ReadSample, RequestFacts, SampleCall};
pub use decide::{Engine, Matching, RuleStep, RunFacts, Treatment};
pub use decision_record::Decision;
pub use diff::{FieldChange, PolicyDiff, RuleChange, diff};
pub use document::{InvalidPolicy, LoadPolicyError, MAX_POLICY_BYTES, POLICY_SCHEMA_SOURCE, PolicyFile};
pub use dry_run::{DryRun, DryRunDifference, LineProblem, ObservedCalls, dry_run};
pub use lint::{LintCode, LintReport, Warning, lint};
pub use model::*;
pub use testing::{TEST_SCHEMA_SOURCE, TestReport, TestResult, test};
