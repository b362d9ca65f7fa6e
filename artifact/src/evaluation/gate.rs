//! The result of the gate and of each of its rules.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::SidePointer;
use crate::number::whole;
use crate::{CaseId, RiskLevel, Share};

/// The result of the gate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// True if and only if the outcome is `passed`.
    pub passed: bool,
    /// The outcome.
    pub outcome: GateOutcome,
    /// All rules, including those that passed.
    pub rules: Vec<GateRule>,
    /// What a person should look at whatever the outcome, most urgent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub review: Vec<ReviewItem>,
}

/// One thing that a person should look at, whatever the outcome of the gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewItem {
    /// The case; absent for an item about the whole comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case_id: Option<CaseId>,
    /// A stable kebab-case name.
    pub code: String,
    /// One sentence with the values.
    pub message: String,
    /// The parts of the artifacts that show it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pointers: Vec<SidePointer>,
}

/// The outcome of the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateOutcome {
    /// All rules are met.
    Passed,
    /// At least one rule is violated.
    Failed,
    /// Too few cases were compared for a decision.
    NotEnoughData,
    /// No rule is violated, but the comparison has nothing to judge by: no expectation was evaluated on new, and each side
    /// has one run.
    NotJudged,
}

/// One rule of the gate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GateRule {
    /// A stable kebab-case name.
    pub code: String,
    /// The cases that the rule applies to; absent if it applies to all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<GateScope>,
    /// How the actual value is compared with the limit.
    pub bound: Bound,
    /// The limit; absent where the value is only informative.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "whole::optional")]
    pub limit: Option<u64>,
    /// The share of `of` that the limit was calculated from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
    /// The counted value.
    #[serde(deserialize_with = "whole::required")]
    pub actual: u64,
    /// The number of cases that could have been counted. With 0, the rule has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "whole::optional")]
    pub of: Option<u64>,
    /// The statistical test that decided the rule; absent where a count decides, and for a rule without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<RuleTest>,
    /// True where the rule is met.
    pub passed: bool,
}

impl GateRule {
    /// Whether the rule can be violated. A rule without a limit is for information.
    pub fn is_limited(&self) -> bool {
        self.limit.is_some() || self.test.is_some()
    }
}

/// A one-sided test of the cases that got worse against those that got better.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RuleTest {
    /// The probability of a result at least this bad where new is as good as the baseline.
    pub p: f64,
    /// The rule is violated where `p` is at most this level.
    pub level: f64,
    /// Cases that got worse.
    #[serde(deserialize_with = "whole::required")]
    pub fell: u64,
    /// Cases that got better.
    #[serde(deserialize_with = "whole::required")]
    pub rose: u64,
    /// At most this many of the cases that got worse are explained by chance; only of the rule `lost`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<f64>,
}

/// The cases that a rule of the gate applies to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "name", rename_all = "snake_case")]
pub enum GateScope {
    /// Cases with this highest risk.
    Risk(RiskLevel),
    /// Cases with this tag in the cases file.
    Tag(String),
    /// Cases of this suite in the cases file.
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

/// How a value is compared with its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The value must not be greater than the limit.
    AtMost,
    /// The value must not be less than the limit.
    AtLeast,
}
