//! Proposed actions of an agent, with the refs to their evidence. Whether a ref resolves is checked by
//! `counterproof-validation`.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Extra;

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
            // An unknown level is neither higher nor lower: it may be any of them.
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

/// A pointer from an action to its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "EvidenceWire", into = "EvidenceWire")]
pub struct EvidenceRef {
    /// The target.
    pub target: EvidenceTarget,
    /// Fields that this version does not know.
    pub extra: Extra,
}

/// The target of an evidence ref: exactly one identifier for each kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EvidenceTarget {
    /// The result of a tool call.
    ToolResult {
        /// The call's id.
        call_id: String,
    },
    /// A retrieved document.
    RetrievalDoc {
        /// The document's id.
        doc_id: String,
    },
    /// An event of the artifact: `events[3]`, or an id that the event itself carries.
    Event {
        /// The index or the id of the event.
        id: String,
    },
    /// A file under `assets/`: its id in the manifest, or its href.
    Asset {
        /// The asset's id or href.
        id: String,
    },
}

/// The wire form of a ref.
#[derive(Serialize, Deserialize)]
struct EvidenceWire {
    kind: Kind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    call_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    doc_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(flatten)]
    extra: Extra,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    ToolResult,
    RetrievalDoc,
    Event,
    Asset,
}

/// An evidence ref without the identifier of its kind, or with an additional one.
#[derive(Debug, thiserror::Error)]
#[error(
    "an evidence ref has exactly one identifier: `call_id` for tool_result, `doc_id` for retrieval_doc, `id` for event and asset"
)]
struct IdentifierError;

impl TryFrom<EvidenceWire> for EvidenceRef {
    type Error = IdentifierError;

    fn try_from(wire: EvidenceWire) -> Result<Self, IdentifierError> {
        let target = match (wire.kind, wire.call_id, wire.doc_id, wire.id) {
            (Kind::ToolResult, Some(call_id), None, None) => EvidenceTarget::ToolResult { call_id },
            (Kind::RetrievalDoc, None, Some(doc_id), None) => EvidenceTarget::RetrievalDoc { doc_id },
            (Kind::Event, None, None, Some(id)) => EvidenceTarget::Event { id },
            (Kind::Asset, None, None, Some(id)) => EvidenceTarget::Asset { id },
            // An additional identifier is an error as well: it is unclear which of the two is meant.
            _ => return Err(IdentifierError),
        };
        Ok(EvidenceRef { target, extra: wire.extra })
    }
}

impl From<EvidenceRef> for EvidenceWire {
    fn from(evidence: EvidenceRef) -> Self {
        let mut wire =
            EvidenceWire { kind: Kind::ToolResult, call_id: None, doc_id: None, id: None, extra: evidence.extra };
        match evidence.target {
            EvidenceTarget::ToolResult { call_id } => wire.call_id = Some(call_id),
            EvidenceTarget::RetrievalDoc { doc_id } => {
                wire.kind = Kind::RetrievalDoc;
                wire.doc_id = Some(doc_id);
            }
            EvidenceTarget::Event { id } => {
                wire.kind = Kind::Event;
                wire.id = Some(id);
            }
            EvidenceTarget::Asset { id } => {
                wire.kind = Kind::Asset;
                wire.id = Some(id);
            }
        }
        wire
    }
}

impl EvidenceTarget {
    /// The word in the ref's `kind` field.
    pub const fn kind(&self) -> &'static str {
        match self {
            EvidenceTarget::ToolResult { .. } => "tool_result",
            EvidenceTarget::RetrievalDoc { .. } => "retrieval_doc",
            EvidenceTarget::Event { .. } => "event",
            EvidenceTarget::Asset { .. } => "asset",
        }
    }

    /// The identifier, from the field that the kind requires.
    pub fn id(&self) -> &str {
        match self {
            EvidenceTarget::ToolResult { call_id: id }
            | EvidenceTarget::RetrievalDoc { doc_id: id }
            | EvidenceTarget::Event { id }
            | EvidenceTarget::Asset { id } => id,
        }
    }
}

impl fmt::Display for EvidenceTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", self.kind(), self.id())
    }
}
