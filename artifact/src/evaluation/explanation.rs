//! Explanations of a case in addition to its verdict: the root cause of a difference, findings on the new side, and the
//! severity.

use serde::{Deserialize, Serialize};

use super::SidePointer;
use crate::CaseId;

/// The root cause of a difference: the earliest difference in the trace back from a changed action or output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// A stable kebab-case name.
    pub code: String,
    /// The part that differs, by names that cases share: a tool, and a path in its arguments or result.
    pub place: String,
    /// One sentence with the values.
    pub message: String,
    /// The part, on each side that has it.
    pub pointers: Vec<SidePointer>,
    /// The trace from the changed action or output back to the cause.
    pub path: Vec<SidePointer>,
    /// The id of the cluster of the cases with this cause.
    pub cluster: String,
}

/// Cases whose differences have the same cause in the same part and of the same form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cluster {
    /// Identical for the same cause in every comparison.
    pub id: String,
    /// The code of the cause.
    pub code: String,
    /// The part that differs, as in [`Cause::place`].
    pub place: String,
    /// The message of the cause in the first case.
    pub message: String,
    /// The cases, in case order.
    pub case_ids: Vec<CaseId>,
}

/// A problem of the new side that needs no comparison to be detected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaseFinding {
    /// A stable kebab-case name.
    pub code: String,
    /// One sentence with the values.
    pub message: String,
    /// The parts of the artifacts that show it.
    pub pointers: Vec<SidePointer>,
    /// True where the baseline has the same problem, so it does not affect the verdict.
    pub in_baseline: bool,
}

/// The priority of a case for review, from 0 to 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Severity {
    /// 1 − Π(1 − share) over the parts, reduced by the share of `noise`.
    pub score: f64,
    /// The parts of the score, the largest first.
    pub parts: Vec<SeverityShare>,
}

/// A part of a severity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeverityShare {
    /// A stable kebab-case name.
    pub code: String,
    /// Its weight times its size, from 0 to 1. For `noise`, the share by which the score is reduced.
    pub share: f64,
}
