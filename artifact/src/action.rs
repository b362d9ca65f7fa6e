//! Proposed actions: what the agent wants done.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::take_value;
use crate::{EvidenceRef, Extra};

/// Something that the agent wants done, with the evidence that it gives for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProposedAction {
    /// Unique within the artifact.
    pub action_id: String,
    /// What kind of action, in the agent's own words.
    pub action_type: String,
    /// The tool that would carry it out.
    pub tool_name: String,
    /// What the tool would be given.
    pub params: Map<String, Value>,
    /// How much harm it could do.
    pub risk_level: RiskLevel,
    /// Why it is risky, in the agent's own words.
    pub risk_tags: Vec<String>,
    /// What the action rests on.
    pub evidence_refs: Vec<EvidenceRef>,
    /// What this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ProposedAction {
    /// An action from its object, whose parameters are moved and not made again.
    pub(crate) fn from_value(mut value: Value) -> Result<Self, serde_json::Error> {
        let params = value.as_object_mut().and_then(|fields| take_value::object(fields, "params"));
        let mut action: Self = serde_json::from_value(value)?;
        action.params = params.unwrap_or(action.params);
        Ok(action)
    }
}

/// How much harm an action could do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RiskLevel {
    /// Changes what is hard to change back.
    High,
    /// Changes what can be changed back.
    Medium,
    /// Changes nothing of weight.
    Low,
    /// The agent does not say. It is neither more nor less than the others.
    Unknown,
}

impl RiskLevel {
    /// True where both levels are known and this one is the higher.
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

    /// The word that stands in files.
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
