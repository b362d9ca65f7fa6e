//! Evidence refs of actions. Whether a ref resolves is checked by `counterproof-validation`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Extra;

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
