//! The alignment of the events of both sides, and the first divergence.

use serde::{Deserialize, Serialize};

use super::SidePointer;
use crate::number::whole;

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
