//! `<caseId>.json`: the result of one case, either the agent's answer or a runner failure.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::{CaseId, Count, Event, Extra, FailureClass, Millis, ProposedAction, RunnerFailure, Sha256Digest, Side};

/// The field of a case document with the href of the stored request. The field is optional.
pub const REQUEST_ASSET_HREF: &str = "request_asset_href";

/// The version of the case document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum CaseSchema {
    /// `case.v1`
    #[default]
    #[serde(rename = "case.v1")]
    V1,
}

/// The result of one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "CaseWire", into = "CaseWire")]
pub struct Case {
    /// The case.
    pub case_id: CaseId,
    /// The side of the run.
    pub version: Side,
    /// The workflow that the case belongs to.
    pub workflow_id: Option<String>,
    /// All attempts, in order.
    pub attempts: Option<Vec<Attempt>>,
    /// The tokens and the cost, where the agent reports them.
    pub usage: Option<Usage>,
    /// The answer or the failure.
    pub outcome: Outcome,
    /// Fields that this version does not know.
    pub extra: Extra,
}

/// The answer of the agent or the failure of the runner.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The agent answered: `status` is `ok`.
    Ok(Answer),
    /// The runner got no valid answer: `status` is `runner_error`.
    RunnerError(RunnerFailure),
}

/// The answer of the agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The actions that the agent proposes.
    pub proposed_actions: Vec<ProposedAction>,
    /// The steps of the agent, in order.
    pub events: Vec<Event>,
    /// The final output.
    pub final_output: FinalOutput,
}

/// The final output of the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FinalOutput {
    /// The type of the content.
    pub content_type: ContentType,
    /// The answer.
    pub content: Content,
    /// A short hash of the content for quick comparison; see [`Content::short_hash`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_hash: Option<String>,
    /// The names of the redaction rules that matched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redactions_applied: Option<Vec<String>>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The type of a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ContentType {
    /// Plain text.
    Text,
    /// A JSON object.
    Json,
}

impl ContentType {
    /// The word used in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            ContentType::Text => "text",
            ContentType::Json => "json",
        }
    }
}

/// A text or a JSON object; the contract distinguishes them by the JSON type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
// The published format distinguishes the two by their JSON type only.
#[serde(untagged)]
pub enum Content {
    /// A string.
    Text(String),
    /// An object.
    Json(Map<String, Value>),
}

impl Content {
    /// The first 16 hexadecimal digits of the SHA-256 of the text, or of the object as compact JSON in its own key order.
    pub fn short_hash(&self) -> String {
        match self {
            Content::Text(text) => Sha256Digest::from_bytes(text.as_bytes()).short(),
            // In the key order of the document, as the contract defines: the hash is for a quick look, and equal objects can have different ones.
            Content::Json(object) => {
                Sha256Digest::from_bytes(Value::Object(object.clone()).to_string().as_bytes()).short()
            }
        }
    }
}

/// One attempt at a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Counted from 1.
    pub attempt: Count,
    /// The start time, in ISO 8601.
    pub started_at: String,
    /// The time from the request to the last byte of the response or to the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<Millis>,
    /// The answer or the failure.
    pub outcome: AttemptOutcome,
    /// The class of the failure, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_class: Option<FailureClass>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptOutcome {
    /// A valid answer.
    Ok,
    /// No valid answer.
    RunnerError,
}

/// The wire form of the document.
#[derive(Serialize, Deserialize)]
#[serde(expecting = "an object with the fields of a case artifact")]
struct CaseWire {
    schema_version: CaseSchema,
    case_id: CaseId,
    version: Side,
    status: AttemptOutcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    workflow_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attempts: Option<Vec<Attempt>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proposed_actions: Option<Vec<ProposedAction>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    events: Option<Vec<Event>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    final_output: Option<FinalOutput>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    runner_failure: Option<RunnerFailure>,
    #[serde(flatten)]
    extra: Extra,
}

/// A `status` without the fields that it requires.
#[derive(Debug, thiserror::Error)]
#[error("missing field `{0}`, which this `status` requires")]
struct MissingField(&'static str);

impl TryFrom<CaseWire> for Case {
    type Error = MissingField;

    fn try_from(wire: CaseWire) -> Result<Self, MissingField> {
        let outcome = match wire.status {
            AttemptOutcome::Ok => Outcome::Ok(Answer {
                proposed_actions: wire.proposed_actions.ok_or(MissingField("proposed_actions"))?,
                events: wire.events.ok_or(MissingField("events"))?,
                final_output: wire.final_output.ok_or(MissingField("final_output"))?,
            }),
            AttemptOutcome::RunnerError => {
                Outcome::RunnerError(wire.runner_failure.ok_or(MissingField("runner_failure"))?)
            }
        };
        Ok(Case {
            case_id: wire.case_id,
            version: wire.version,
            workflow_id: wire.workflow_id,
            attempts: wire.attempts,
            usage: wire.usage,
            outcome,
            extra: wire.extra,
        })
    }
}

impl From<Case> for CaseWire {
    fn from(case: Case) -> Self {
        let mut wire = CaseWire {
            schema_version: CaseSchema::V1,
            case_id: case.case_id,
            version: case.version,
            status: AttemptOutcome::Ok,
            workflow_id: case.workflow_id,
            attempts: case.attempts,
            usage: case.usage,
            proposed_actions: None,
            events: None,
            final_output: None,
            runner_failure: None,
            extra: case.extra,
        };
        match case.outcome {
            Outcome::Ok(answer) => {
                wire.proposed_actions = Some(answer.proposed_actions);
                wire.events = Some(answer.events);
                wire.final_output = Some(answer.final_output);
            }
            Outcome::RunnerError(failure) => {
                wire.status = AttemptOutcome::RunnerError;
                wire.runner_failure = Some(failure);
            }
        }
        wire
    }
}

/// The tokens and the cost of a case. A number that the agent does not report is absent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// The tokens that the model read, including the cached ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<Count>,
    /// The tokens that the model wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<Count>,
    /// The input tokens that came from a cache; part of `input_tokens`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<Count>,
    /// The cost in `currency`; zero or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// The currency of the cost, such as `USD`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A field that is absent, null, or a value, where each state has its own meaning.
///
/// Use it with `#[serde(default, skip_serializing_if = "Nullable::is_absent")]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Nullable<T> {
    /// The field is missing: its writer made no statement.
    #[default]
    Absent,
    /// The field is null: its writer states that there is no value.
    Null,
    /// The field has a value.
    Value(T),
}

impl<T> Nullable<T> {
    /// True where the field is missing.
    pub const fn is_absent(&self) -> bool {
        matches!(self, Nullable::Absent)
    }

    /// The value, if there is one.
    pub const fn value(&self) -> Option<&T> {
        match self {
            Nullable::Value(value) => Some(value),
            Nullable::Absent | Nullable::Null => None,
        }
    }
}

impl<T> From<Option<T>> for Nullable<T> {
    fn from(option: Option<T>) -> Self {
        option.map_or(Nullable::Null, Nullable::Value)
    }
}

impl<T: Serialize> Serialize for Nullable<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // An absent field does not get here: `skip_serializing_if` leaves it out.
        self.value().serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Nullable<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A missing field does not get here: serde takes the default, which is `Absent`.
        Option::<T>::deserialize(deserializer).map(Nullable::from)
    }
}
