//! Explanations of a case in addition to its verdict: the alignment of both sides, expectations, the root cause of a
//! difference, findings on the new side, and the severity.

use serde::{Deserialize, Serialize};

use super::SidePointer;
use crate::number::whole;
use crate::{CaseId, Count, RiskLevel};

/// The first step at which the two sides differ in meaning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Divergence {
    /// What kind of step differs.
    pub kind: DivergenceKind,
    /// The step, on each side that has it.
    pub pointers: Vec<SidePointer>,
    /// One sentence that describes the difference.
    pub message: String,
}

/// The alignment of the events of both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Alignment {
    /// The cost of the cheapest alignment: 1 for a step that only one side has, up to 1.5 for a pair that differs. A call
    /// and its result are one step. A moved step costs as much as a removed and an added one.
    pub cost: f64,
    /// True where the lists were too long for an exhaustive search, so a cheaper alignment may exist.
    pub bounded: bool,
    /// The number of events by operation.
    pub operations: Operations,
    /// The first event on each side after which all steps are equal up to the end. Empty where no earlier step differs, or
    /// where there is no such event. The final output does not count as a step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recovery: Vec<SidePointer>,
}

/// The number of events by operation, from the baseline to new. A pair counts once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Operations {
    /// Pairs without a difference.
    #[serde(deserialize_with = "whole::required")]
    pub same: u64,
    /// Pairs that differ.
    #[serde(deserialize_with = "whole::required")]
    pub changed: u64,
    /// Pairs in a different order; they may differ as well.
    #[serde(deserialize_with = "whole::required")]
    pub moved: u64,
    /// Events that only new has.
    #[serde(deserialize_with = "whole::required")]
    pub added: u64,
    /// Events that only the baseline has.
    #[serde(deserialize_with = "whole::required")]
    pub removed: u64,
}

/// The kind of the first step that differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DivergenceKind {
    /// Different tools were called, or in a different order.
    ToolSequence,
    /// A tool was called with different arguments.
    ToolArgs,
    /// A tool returned a different result.
    ToolResult,
    /// A retrieval has a different query or different documents.
    Retrieval,
    /// The answer differs.
    FinalOutput,
    /// The proposed actions differ and the events are equal.
    ProposedAction,
    /// Events of an unknown type differ.
    OtherEvent,
    /// One side has a runner error.
    RunnerError,
}

/// The result of one expectation on both sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpectationResult {
    /// The key in the cases file, such as `tool_required`.
    pub code: String,
    /// A description of the expected behaviour.
    pub expected: String,
    /// The name that the cases file gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The turn that it is about, counted from 1; absent for the whole case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Count>,
    /// True for a hard expectation: unmet on new, it fails the gate whatever the baseline does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub must: bool,
    /// The result on the baseline; absent if it has no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Judgement>,
    /// The result on new; absent if it has no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Judgement>,
}

/// The result of an expectation on one side, with a description of the actual behaviour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "JudgementRecord", into = "JudgementRecord")]
pub enum Judgement {
    /// The expectation is met.
    Met(String),
    /// The expectation is not met.
    Unmet(String),
    /// The expectation could not be decided within the limits on work.
    Undecided(String),
}

impl Judgement {
    /// True where the expectation is met.
    pub const fn is_met(&self) -> bool {
        matches!(self, Self::Met(_))
    }

    /// True where the expectation is not met. An undecided one is neither met nor unmet.
    pub const fn is_unmet(&self) -> bool {
        matches!(self, Self::Unmet(_))
    }

    /// True where the expectation could not be decided.
    pub const fn is_undecided(&self) -> bool {
        matches!(self, Self::Undecided(_))
    }

    /// The description of the actual behaviour.
    pub fn found(&self) -> &str {
        match self {
            Self::Met(found) | Self::Unmet(found) | Self::Undecided(found) => found,
        }
    }
}

/// The form of a judgement in `evaluation.json`.
#[derive(Serialize, Deserialize)]
struct JudgementRecord {
    passed: bool,
    found: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    undecided: bool,
}

impl From<JudgementRecord> for Judgement {
    fn from(record: JudgementRecord) -> Self {
        match (record.passed, record.undecided) {
            (true, _) => Self::Met(record.found),
            (false, false) => Self::Unmet(record.found),
            (false, true) => Self::Undecided(record.found),
        }
    }
}

impl From<Judgement> for JudgementRecord {
    fn from(judgement: Judgement) -> Self {
        let (passed, undecided) = (judgement.is_met(), judgement.is_undecided());
        let (Judgement::Met(found) | Judgement::Unmet(found) | Judgement::Undecided(found)) = judgement;
        Self { passed, found, undecided }
    }
}

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
