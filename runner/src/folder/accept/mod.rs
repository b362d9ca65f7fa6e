//! Accepting a new run as the baseline.

mod accept_error;
mod acceptance;
mod copy;
mod labels;

pub use accept_error::{AcceptError, Incompleteness, RepeatProblem};
pub use acceptance::{Acceptance, Baseline, accept};
pub use labels::{CaseLabels, LabelsError};
