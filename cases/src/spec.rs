//! The types of a case. How they come out of a file is not their business.

use counterproof_artifact::{CaseId, Extra};
use serde::Serialize;
use serde_json::Value;

use crate::expect::Expect;

/// One case: what is asked, and what is expected of the answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaseSpec {
    /// Names the case and the file of its artifact.
    pub id: CaseId,
    /// What the case is about, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the agent is asked.
    pub input: Input,
    /// What the answer is held against.
    #[serde(skip_serializing_if = "Expected::is_empty")]
    pub expected: Expected,
    /// What the case is sorted by.
    #[serde(skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
    /// The suite that the case belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suite: Option<String>,
    /// What this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What the agent is asked. Serialised, it is the `input` of the request.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Input {
    /// What the user says.
    pub user: String,
    /// What the agent is told beside it, in whatever shape it takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Value>,
    /// What this version does not know; it is sent along.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What a case is sorted by.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Metadata {
    /// Free words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// How much a failure would weigh, in the author's own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<String>,
    /// What kind of case it is, in the author's own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// What this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Metadata {
    /// True where nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What the answer to a case is held against. An expectation that is absent is not judged.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Expected {
    /// Types of action that the agent must propose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_required: Option<Vec<String>>,
    /// Tools that the agent must call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_required: Option<Vec<String>>,
    /// The tools that the agent must call first, in this order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_sequence: Option<Vec<String>>,
    /// A JSON Schema for the content of the final output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json_schema: Option<Value>,
    /// Documents that the agent must retrieve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retrieval_required: Option<RetrievalRequired>,
    /// Phrases that the final output must hold, in any letter case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub must_include: Option<Vec<String>>,
    /// Phrases that the final output must not hold, in any letter case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub must_not_include: Option<Vec<String>>,
    /// Whether every action of weight must rest on evidence that resolves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence_required_for_actions: Option<bool>,
    /// Expressions over the answer that must hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect: Option<Vec<Expect>>,
    /// Expectations that this version does not know, and so does not judge.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Expected {
    /// The names of the expectations that this version knows.
    pub const KEYS: [&str; 9] = [
        "action_required",
        "tool_required",
        "tool_sequence",
        "json_schema",
        "retrieval_required",
        "must_include",
        "must_not_include",
        "evidence_required_for_actions",
        "expect",
    ];

    /// True where nothing is expected.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Documents that the agent must retrieve.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct RetrievalRequired {
    /// Their ids, in any order.
    pub doc_ids: Vec<String>,
    /// What this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}
