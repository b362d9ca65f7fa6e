//! The types of a case. Reading them from a file is in other modules.

use counterproof_artifact::{CaseId, Extra};
use serde::Serialize;
use serde_json::Value;

use crate::expect::Expect;

/// One case: an input, and expectations for the answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaseSpec {
    /// The id, which is also the name of the artifact's file.
    pub id: CaseId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The input of the agent.
    pub input: Input,
    /// The expectations for the answer.
    #[serde(skip_serializing_if = "Expected::is_empty")]
    pub expected: Expected,
    /// Metadata for filters and groups.
    #[serde(skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
    /// The name of the suite that the case belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suite: Option<String>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The input of the agent. Its serialised form is the `input` of the request.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Input {
    /// The message of the user.
    pub user: String,
    /// Further context for the agent, of any JSON type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Value>,
    /// Unknown fields, which are sent to the agent too.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Metadata for filters and groups.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Metadata {
    /// Free-form tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The severity of a failure, as free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<String>,
    /// The kind of case, as free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Metadata {
    /// Returns true if no field is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The expectations for the answer to a case. An absent expectation is not evaluated.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Expected {
    /// Action types that the agent must propose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_required: Option<Vec<String>>,
    /// Tools that the agent must call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_required: Option<Vec<String>>,
    /// Tools that the agent must call first, in this order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_sequence: Option<Vec<String>>,
    /// A JSON Schema for the content of the final output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json_schema: Option<Value>,
    /// Documents that the agent must retrieve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retrieval_required: Option<RetrievalRequired>,
    /// Phrases that the final output must contain. Letter case is ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub must_include: Option<Vec<String>>,
    /// Phrases that the final output must not contain. Letter case is ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub must_not_include: Option<Vec<String>>,
    /// If true, every action above low risk must have evidence that resolves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence_required_for_actions: Option<bool>,
    /// If true, no call may be refused by a policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_refused_calls: Option<bool>,
    /// The longest duration in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_latency_ms: Option<f64>,
    /// The largest number of tool calls and retrievals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u64>,
    /// The largest number of input and output tokens together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// The highest cost, in the currency that the agent reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<f64>,
    /// Expressions over the answer that must be true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect: Option<Vec<Expect>>,
    /// If true, all expectations of the case are hard: a single one that new does not meet fails the gate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub must: Option<bool>,
    /// Unknown expectations, which are not evaluated.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Expected {
    /// The names of all known expectations.
    pub const KEYS: [&str; 15] = [
        "action_required",
        "tool_required",
        "tool_sequence",
        "json_schema",
        "retrieval_required",
        "must_include",
        "must_not_include",
        "evidence_required_for_actions",
        "no_refused_calls",
        "max_latency_ms",
        "max_steps",
        "max_tokens",
        "max_cost",
        "expect",
        "must",
    ];

    /// Returns true if there is no expectation.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Documents that the agent must retrieve.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct RetrievalRequired {
    /// The document ids, in any order.
    pub doc_ids: Vec<String>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}
