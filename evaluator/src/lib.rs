//! Compares two runs of an agent: what changed in each case, why, how serious it is, and whether the new version passes
//! the gate.
//!
//! The modules are the stages of the comparison, and each imports only stages before it:
//!
//! ```text
//! values ← load ← rules ← diff ← grounding ← messages ← judge ← cause ← gate, statistics ← repeats ← comparison ← mutation,
//! calibration
//! ```
//!
//! Each stage is a set of functions from values to values. One pair of artifacts passes through all stages on one worker
//! and is then dropped, so memory grows with the number of cases and not with their size. This crate never calls an agent:
//! it reads run folders that any producer wrote to the contract.
//!
//! # Example
//!
//! Compare two run folders, print each verdict and the gate's outcome:
//!
//! ```no_run
//! use std::error::Error;
//!
//! use camino::Utf8Path;
//! use counterproof_store::RunReader;
//! use counterproof_evaluator::{ComparedRun, Request, SideRuns, compare, evaluation_text};
//!
//! fn main() -> Result<(), Box<dyn Error>> {
//!     let open = |folder: &str| RunReader::open(Utf8Path::new(folder)).map(ComparedRun::new).map(SideRuns::from);
//!     let request = Request::new(open("runs/baseline/1")?, open("runs/new/2")?);
//!     let evaluation = compare(&request, |case| {
//!         println!("{}: {:?}", case.row.case_id, case.row.verdict);
//!         Ok::<_, std::io::Error>(())
//!     })?;
//!     println!("{}", evaluation_text::outcome(&evaluation));
//!     Ok(())
//! }
//! ```

// The interface that a program embeds.
#![warn(missing_docs)]

mod calibration;
mod cause;
mod comparison;
mod diff;
mod gate;
mod grounding;
mod judge;
mod load;
pub mod messages;
mod mutation;
mod repeats;
mod rules;
pub mod statistics;
mod values;

// Texts of values. Messages about differences are in [`messages`].
pub use values::text;

// Runs and their artifacts.
pub use load::{
    Artifact, CaseEnvelope, ComparedRun, EventIndex, FollowedRef, LoadedAnswer, LoadedFailure, Payload, RecordedRun,
    Resolved, SideRuns, follow_evidence, has_failed, pair,
};

// Rules of comparison.
pub use rules::{InvalidPattern, RuleError, RuleProblem, RuleTables, Rules};

// Differences of two answers.
pub use diff::{
    ActionRow, ChangeKind, Differences, EventRow, EvidenceChange, JsonChange, JsonChanges, LineOrigin, LocatedValue,
    Operation, OutputChange, Row, TextChanges, TextLine, TextPart, WithEvidence, diff_json, diff_texts,
    output_pointers, row_pointers,
};

// What the values that an agent passed are from.
pub use grounding::{TracedArgument, ValueSource};

// Judging, the gate, and statistics over repeated runs.
pub use cause::CauseCode;
pub use gate::{
    AddedCase, Decision, DecisionKind, GateRules, GrowthLimit, Limit, Measure, RankedCase, ReviewLine, ScopeRules,
    Standing, UnknownScope, UsageLimits, ViolatedRule, ViolatedRules, decide, headline as gate_headline, is_alone,
    is_unconfirmed, more_runs, qualifications as gate_qualifications, review_lines, unknown_scopes,
    wanted_baseline_runs, worst_first,
};
pub use judge::signals::{Domain, SignalSettings};
pub use judge::usage::of_answer as usage_of_answer;
pub use judge::{
    CallOutcome, Expectations, MadeCall, ReasonCode, SchemaError, SeverityPart, any_failed, call_outcomes, made_calls,
    spoken,
};
pub use repeats::{LostCases, smallest_confirmable};
pub use statistics::{ConfirmationCount, Decides, Thresholds};

// The comparison.
pub use comparison::{
    CaseComparison, CompareError, FlippedCase, OtherRun, Request, ShardFacts, ShardFactsError, WriteShardFactsError,
    compare, different_settings, evaluation_text, flipped_cases, other_runs, rerender, write_shard_facts,
};

// Studies that compare many times: what the gate finds, and how often it fails for nothing.
pub use calibration::{Calibration, Design, FalseAlarms, SmallestFall, calibrate};
pub use mutation::{Fault, FaultReport, survey as survey_faults};

/// Parts of the stages that the integration tests check one by one. Not part of the interface.
#[doc(hidden)]
pub mod test_support {
    pub use crate::diff::json::diff_under;
    pub use crate::rules::{Notes, Renaming, Scope, Subject, view};
    pub use crate::values::same;
}
