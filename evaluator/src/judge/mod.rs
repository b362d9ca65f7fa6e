//! Judges one case: its expectations, findings, verdict and severity.

pub(crate) mod answer_texts;
pub(crate) mod behaviour;
mod calls;
pub(crate) mod deterministic_texts;
mod distance;
mod expectations;
pub(crate) mod findings;
pub(crate) mod hand_over;
mod language;
pub(crate) mod outage;
pub(crate) mod outcomes;
mod reason_code;
pub(crate) mod reasons;
pub(crate) mod severity;
pub(crate) mod signals;
pub(crate) mod stated_numbers;
pub(crate) mod story;
pub(crate) mod usage;
pub(crate) mod verdict;
pub(crate) mod writes;

pub use calls::{MadeCall, made_calls, spoken};
pub use expectations::{Expectations, SchemaError};
pub use outcomes::{CallOutcome, any_failed, call_outcomes};
pub use reason_code::ReasonCode;
pub(crate) use reason_code::code_enum;
pub use severity::SeverityPart;
