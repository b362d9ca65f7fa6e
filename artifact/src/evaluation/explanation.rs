//! Explanations of a case in addition to its verdict: the root cause of a difference, findings on the new side, and the
//! severity.

use serde::{Deserialize, Serialize};

use super::SidePointer;
use crate::{CaseId, RiskLevel};

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
    /// The stated risk of the action or call that has the problem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk_level: Option<RiskLevel>,
}

/// The priority of a case for review, from 0 to 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Severity {
    /// 1 − (1 − decisive) · (1 − others / 2), where each of the two is 1 − Π(1 − share) over its parts.
    pub score: f64,
    /// The parts of the score, the largest first.
    pub parts: Vec<SeverityShare>,
}

/// How severe a case is, for display.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SeverityLevel {
    /// At most other steps or words.
    Low,
    /// Other numbers, actions of lower risk, or lost evidence.
    Medium,
    /// A part that decides: a write differs, an expectation is no longer met, or there is no answer.
    High,
}

impl SeverityLevel {
    /// The level in lower case.
    pub const fn as_str(self) -> &'static str {
        match self {
            SeverityLevel::Low => "low",
            SeverityLevel::Medium => "medium",
            SeverityLevel::High => "high",
        }
    }
}

impl Severity {
    /// The lowest score of the level high: that of one write that differs.
    pub const HIGH: f64 = 0.6;

    /// The lowest score of the level medium: more than the steps alone can reach.
    pub const MEDIUM: f64 = 0.1;

    /// Returns the level; `None` if nothing counts.
    pub fn level(&self) -> Option<SeverityLevel> {
        match self.score {
            score if score >= Self::HIGH => Some(SeverityLevel::High),
            score if score > Self::MEDIUM => Some(SeverityLevel::Medium),
            score if score > 0.0 => Some(SeverityLevel::Low),
            _ => None,
        }
    }
}

/// A part of a severity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeverityShare {
    /// A stable kebab-case name.
    pub code: String,
    /// Its weight times its size, from 0 to 1. For `noise`, the share by which the score is reduced.
    pub share: f64,
}
