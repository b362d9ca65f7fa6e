//! The executable check of a contract: its command, its assertions, the shape of its output and its artifacts.
//!
//! ```text
//! contract ─▶ VerificationPlan ─▶ output schema ─▶ attempts of the command, each with its assertions ─▶ artifacts ─▶ Verified
//! ```
//!
//! The parts are functions of values, apart from the command and the artifacts. Nothing that cannot be evaluated counts as
//! met: an assertion with an error, an undecided schema, or a command that was stopped.

mod assertion;
mod output_schema;
mod plan;

pub use assertion::{
    ArtifactCheck, ArtifactProblem, Assertion, AssertionInputs, AssertionOutcome, AssertionResult, FoundArtifact,
    MAX_ARTIFACT_BYTES, VARIABLES, check_artifacts,
};
pub use output_schema::{OutputCheck, OutputSchema, OutputSchemaError, OutputViolation};
pub use plan::{Attempt, ExitCodeRule, PlanError, VerificationPlan, VerificationReport, Verified, VerifySettings};
