//! Proposed actions of an agent.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{EvidenceRef, Extra};

/// An action that the agent proposes, with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProposedAction {
    /// Unique within the artifact.
    pub action_id: String,
    /// The kind of action, in the agent's words.
    pub action_type: String,
    /// The tool that performs it.
    pub tool_name: String,
    /// The parameters of the tool.
    pub params: Map<String, Value>,
    /// How much harm it could do.
    pub risk_level: RiskLevel,
    /// The reasons for the risk, in the agent's words.
    pub risk_tags: Vec<String>,
    /// The evidence for the action.
    pub evidence_refs: Vec<EvidenceRef>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// How much harm an action could do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RiskLevel {
    /// Hard to reverse.
    High,
    /// Reversible.
    Medium,
    /// No significant change.
    Low,
    /// Not stated by the agent; not comparable with the other levels.
    Unknown,
}

impl RiskLevel {
    /// True where both levels are known and this one is higher.
    pub const fn exceeds(self, other: RiskLevel) -> bool {
        match (self.rank(), other.rank()) {
            (Some(mine), Some(theirs)) => mine > theirs,
            _ => false,
        }
    }

    const fn rank(self) -> Option<u8> {
        match self {
            RiskLevel::Unknown => None,
            RiskLevel::Low => Some(0),
            RiskLevel::Medium => Some(1),
            RiskLevel::High => Some(2),
        }
    }

    /// The word used in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            RiskLevel::High => "high",
            RiskLevel::Medium => "medium",
            RiskLevel::Low => "low",
            RiskLevel::Unknown => "unknown",
        }
    }
}

impl fmt::Display for RiskLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
