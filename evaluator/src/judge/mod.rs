//! Judges one case: its expectations, findings, verdict and severity.

mod code_enum;
mod expect;
pub(crate) mod expectation_reasons;
mod expectations;
mod failed_evidence;
pub(crate) mod findings;
pub(crate) mod high_risk;
pub(crate) mod outcomes;
mod reason_code;
pub(crate) mod severity;
mod side_pointers;
pub(crate) mod signals;
mod steps;
pub(crate) mod usage;
pub(crate) mod verdict;

pub(crate) use code_enum::code_enum;
pub(crate) use expectations::Judged;
pub use expectations::{Expectations, SchemaError};
pub use outcomes::{CallOutcome, any_failed, call_outcomes};
pub use reason_code::ReasonCode;
pub use severity::SeverityPart;
