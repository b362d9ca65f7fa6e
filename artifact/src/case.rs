//! `<caseId>.json`: what came back for one case, either the agent's answer or a runner failure.

use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::take_value;
use crate::{CaseId, Count, Event, Extra, FailureClass, Millis, ProposedAction, RunnerFailure, Sha256Digest, Side};

/// The version of the case document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum CaseSchema {
    /// `case.v1`
    #[default]
    #[serde(rename = "case.v1")]
    V1,
}

/// What came back for one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "CaseWire", into = "CaseWire")]
pub struct Case {
    /// The case that was asked.
    pub case_id: CaseId,
    /// The side that was asked.
    pub version: Side,
    /// The workflow that the case belongs to.
    pub workflow_id: Option<String>,
    /// Every try, in order.
    pub attempts: Option<Vec<Attempt>>,
    /// How it ended.
    pub outcome: Outcome,
    /// What this version does not know.
    pub extra: Extra,
}

/// How a case ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The agent answered: `status` is `ok`.
    Ok(Answer),
    /// The runner got no valid answer: `status` is `runner_error`.
    RunnerError(RunnerFailure),
}

/// What the agent answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What the agent wants done.
    pub proposed_actions: Vec<ProposedAction>,
    /// What the agent did, step by step.
    pub events: Vec<Event>,
    /// What the agent said in the end.
    pub final_output: FinalOutput,
}

/// What the agent said in the end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FinalOutput {
    /// How to read the content.
    pub content_type: ContentType,
    /// The answer.
    pub content: Content,
    /// A short hash of the content, to compare quickly: see [`Content::short_hash`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_hash: Option<String>,
    /// Which secrets were taken out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redactions_applied: Option<Vec<String>>,
    /// What this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// How to read a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ContentType {
    /// As text.
    Text,
    /// As JSON.
    Json,
}

impl ContentType {
    /// The word that stands in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            ContentType::Text => "text",
            ContentType::Json => "json",
        }
    }
}

/// A text or a JSON object: the contract leaves it to the value which.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
            Content::Text(text) => Sha256Digest::of(text.as_bytes()).short(),
            Content::Json(object) => Sha256Digest::of(Value::Object(object.clone()).to_string().as_bytes()).short(),
        }
    }
}

/// One try at a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Counted from 1.
    pub attempt: Count,
    /// In ISO 8601.
    pub started_at: String,
    /// From the request to the last byte of the response, or to the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<Millis>,
    /// How it ended.
    pub outcome: AttemptOutcome,
    /// The class of failure, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_class: Option<FailureClass>,
    /// What this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptOutcome {
    /// With a valid answer.
    Ok,
    /// Without one.
    RunnerError,
}

/// The document as it stands in the file.
#[derive(Serialize, Deserialize)]
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

impl Case {
    /// An artifact from its parsed document, whose values are moved. Deserialising the same document gives the same.
    pub fn from_document(mut document: Value) -> Result<Self, serde_json::Error> {
        let (mut events, mut actions, mut content) = (None, None, None);
        if let Value::Object(fields) = &mut document {
            events = take_value::array(fields, "events");
            actions = take_value::array(fields, "proposed_actions");
            let output = fields.get_mut("final_output").and_then(Value::as_object_mut);
            content = output.and_then(|output| take_value::content(output, "content"));
        }
        let mut wire: CaseWire = serde_json::from_value(document)?;
        if let Some(events) = events {
            wire.events = Some(events.into_iter().map(event).collect::<Result<_, _>>()?);
        }
        if let Some(actions) = actions {
            wire.proposed_actions =
                Some(actions.into_iter().map(ProposedAction::from_value).collect::<Result<_, _>>()?);
        }
        if let (Some(output), Some(content)) = (&mut wire.final_output, content) {
            output.content = content;
        }
        Case::try_from(wire).map_err(serde_json::Error::custom)
    }
}

fn event(value: Value) -> Result<Event, serde_json::Error> {
    match value {
        Value::Object(fields) => Event::from_fields(fields),
        other => serde_json::from_value(other),
    }
}

/// A status whose fields are not there.
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
