//! How the steps of the two sides line up, and where they part.

use serde::{Deserialize, Serialize};

use super::SidePointer;
use crate::number::whole;

/// The first step at which the two sides differ in meaning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Divergence {
    /// What kind of step differs.
    pub kind: DivergenceKind,
    /// Where, on the sides that have the step.
    pub pointers: Vec<SidePointer>,
    /// One sentence about it.
    pub message: String,
}

/// How the events of the two sides line up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Alignment {
    /// What the cheapest alignment costs: 1 for a step that only one side took, up to 1.5 for two that stand for each other.
    /// A call and its result are one step. A step that moved costs as much as one left out and one put in.
    pub cost: f64,
    /// True where the lists were too long to be sure that no other alignment is cheaper.
    pub bounded: bool,
    /// What happened to the events.
    pub operations: Operations,
    /// The first event on both sides from which on every step is the same to the end; empty where nothing differs before it,
    /// or where there is none. The final output is no step in this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recovery: Vec<SidePointer>,
}

/// What happened to the events from the baseline to new, counted by row: a pair counts once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Operations {
    /// Pairs that mean the same.
    #[serde(deserialize_with = "whole::required")]
    pub same: u64,
    /// Pairs that differ.
    #[serde(deserialize_with = "whole::required")]
    pub changed: u64,
    /// Pairs that stand in another place; they may differ as well.
    #[serde(deserialize_with = "whole::required")]
    pub moved: u64,
    /// Events that only new has.
    #[serde(deserialize_with = "whole::required")]
    pub added: u64,
    /// Events that only the baseline has.
    #[serde(deserialize_with = "whole::required")]
    pub removed: u64,
}

/// What kind of step differs first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DivergenceKind {
    /// Other tools were called, or in another order.
    ToolSequence,
    /// A tool was given other arguments.
    ToolArgs,
    /// A tool returned something else.
    ToolResult,
    /// Other documents were found, or looked for.
    Retrieval,
    /// The answer differs.
    FinalOutput,
    /// The proposed actions differ, though the events do not.
    ProposedAction,
    /// Events of a type that this version does not know differ.
    OtherEvent,
    /// One side could not be run.
    RunnerError,
}
