//! What explains a case beside its verdict: from where the difference comes, what is wrong with new by itself, and how much
//! the case deserves a look.

use serde::{Deserialize, Serialize};

use super::SidePointer;
use crate::CaseId;

/// From where a difference comes: the earliest difference on the way back from a changed action or output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// A stable kebab-case name.
    pub code: String,
    /// What differs, by names that cases share: a tool, and the place in its arguments or its result.
    pub place: String,
    /// One sentence with the values.
    pub message: String,
    /// Where, on the sides that have it.
    pub pointers: Vec<SidePointer>,
    /// The way that was walked, from what changed back to the cause.
    pub path: Vec<SidePointer>,
    /// The id of the cluster of cases that share it.
    pub cluster: String,
}

/// Cases whose differences have the same cause, at the same place, of the same shape.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cluster {
    /// The same for the same cause in any comparison.
    pub id: String,
    /// The cause's code.
    pub code: String,
    /// The cause's place.
    pub place: String,
    /// The cause's sentence in the first of the cases.
    pub message: String,
    /// The cases, in case order.
    pub case_ids: Vec<CaseId>,
}

/// Something that is wrong with the new side by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaseFinding {
    /// A stable kebab-case name.
    pub code: String,
    /// One sentence with the values.
    pub message: String,
    /// Where to look.
    pub pointers: Vec<SidePointer>,
    /// True where the same is wrong with the baseline, so that it decides nothing.
    pub in_baseline: bool,
}

/// How much a case deserves a look, between 0 and 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Severity {
    /// 1 − Π(1 − share) over the parts, and less by the share of what is noise.
    pub score: f64,
    /// What it is made of, the largest first.
    pub parts: Vec<SeverityShare>,
}

/// A part of a severity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeverityShare {
    /// A stable kebab-case name.
    pub code: String,
    /// Its weight times its size, between 0 and 1; of `noise` the share by which the score is less.
    pub share: f64,
}
