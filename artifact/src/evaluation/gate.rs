//! The gate: whether a version may go out, and every rule that was asked.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::number::whole;
use crate::{RiskLevel, Share};

/// Whether it may go out, with every rule that was asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// True only where the outcome is `passed`.
    pub passed: bool,
    /// The answer.
    pub outcome: GateOutcome,
    /// Every rule, those that passed too.
    pub rules: Vec<GateRule>,
}

/// What the gate says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateOutcome {
    /// Every rule holds.
    Passed,
    /// A rule is broken.
    Failed,
    /// Too little was compared to say.
    NotEnoughData,
}

/// One rule of the gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateRule {
    /// Its stable name.
    pub code: String,
    /// Which cases it is about; absent where it is about all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<GateScope>,
    /// How the actual value is held against the limit.
    pub bound: Bound,
    /// The limit; absent where there is none, and the value is for information.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "whole::optional")]
    pub limit: Option<u64>,
    /// The share that the limit was worked out from: so much of `of`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
    /// What was counted.
    #[serde(deserialize_with = "whole::required")]
    pub actual: u64,
    /// How many cases could have been counted: with none, the rule says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "whole::optional")]
    pub of: Option<u64>,
    /// Whether it holds.
    pub passed: bool,
}

/// Which cases a rule of the gate is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "name", rename_all = "snake_case")]
pub enum GateScope {
    /// Those whose highest risk is this.
    Risk(RiskLevel),
    /// Those with this tag in the cases file.
    Tag(String),
    /// Those of this suite in the cases file.
    Suite(String),
}

impl fmt::Display for GateScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GateScope::Risk(level) => write!(f, "risk {level}"),
            GateScope::Tag(tag) => write!(f, "tag {tag}"),
            GateScope::Suite(suite) => write!(f, "suite {suite}"),
        }
    }
}

/// How a value is held against its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// It may not be greater.
    AtMost,
    /// It may not be less.
    AtLeast,
}
