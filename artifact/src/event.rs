//! Events: the steps of the agent. Unknown event types of later versions are preserved and never an error.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::{Content, ContentType, Extra, Href, Millis, RiskLevel, Sha256Digest};

/// One step of the agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The time, in milliseconds since 1970-01-01T00:00:00Z.
    pub ts: Millis,
    /// The content of the event.
    pub body: EventBody,
}

/// The content of an event, by its type.
#[derive(Debug, Clone, PartialEq)]
pub enum EventBody {
    /// A tool call of the agent.
    ToolCall(ToolCall),
    /// A tool returned a result.
    ToolResult(ToolResult),
    /// The agent retrieved documents.
    Retrieval(Retrieval),
    /// The final output as an event.
    FinalOutput(FinalOutputEvent),
    /// An unknown type, with all its fields except `type` and `ts`.
    Unknown {
        /// The type.
        kind: String,
        /// The other fields.
        fields: Map<String, Value>,
    },
}

/// A tool call of the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Unique among the calls of the artifact.
    pub call_id: String,
    /// The proposed action that the call performs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_id: Option<String>,
    /// The tool's name.
    pub tool: String,
    /// The arguments.
    pub args: Map<String, Value>,
    /// How much harm the call could do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk_level: Option<RiskLevel>,
    /// The reasons for the risk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk_tags: Option<Vec<String>>,
    /// What the program that recorded the call notes about it. It is shown, and not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Map<String, Value>>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call that it belongs to.
    pub call_id: String,
    /// The proposed action that the call performed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_id: Option<String>,
    /// Whether the call succeeded.
    pub status: ToolStatus,
    /// The duration of the call.
    pub latency_ms: Millis,
    /// The payload, or a summary where it is too large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_summary: Option<Content>,
    /// The file with the complete payload, if it is too large for the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_asset_href: Option<Href>,
    /// The digest of that file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_asset_sha256: Option<Sha256Digest>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Whether a tool call succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolStatus {
    /// The call succeeded.
    Ok,
    /// The call failed.
    Error,
}

/// A retrieval of documents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Retrieval {
    /// The search query.
    pub query: String,
    /// The ids of the documents found, best first.
    pub doc_ids: Vec<String>,
    /// Hashes of the snippets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snippets_hashes: Option<Vec<String>>,
    /// The file with the snippets, where they are saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snippets_asset_href: Option<Href>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The final output as an event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FinalOutputEvent {
    /// The type of the content.
    pub content_type: ContentType,
    /// The answer.
    pub content: Content,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Event {
    /// The word in the event's `type` field.
    pub fn kind(&self) -> &str {
        match &self.body {
            EventBody::ToolCall(_) => "tool_call",
            EventBody::ToolResult(_) => "tool_result",
            EventBody::Retrieval(_) => "retrieval",
            EventBody::FinalOutput(_) => "final_output",
            EventBody::Unknown { kind, .. } => kind,
        }
    }

    /// The tool call, if the event is one.
    pub const fn tool_call(&self) -> Option<&ToolCall> {
        match &self.body {
            EventBody::ToolCall(call) => Some(call),
            _ => None,
        }
    }

    /// The asset that the event links to.
    pub fn asset_href(&self) -> Option<&Href> {
        match &self.body {
            EventBody::ToolResult(body) => body.payload_asset_href.as_ref(),
            EventBody::Retrieval(body) => body.snippets_asset_href.as_ref(),
            EventBody::ToolCall(_) | EventBody::FinalOutput(_) | EventBody::Unknown { .. } => None,
        }
    }

    /// Fields that this version does not know.
    pub fn extra(&self) -> &Extra {
        match &self.body {
            EventBody::ToolCall(body) => &body.extra,
            EventBody::ToolResult(body) => &body.extra,
            EventBody::Retrieval(body) => &body.extra,
            EventBody::FinalOutput(body) => &body.extra,
            EventBody::Unknown { fields, .. } => fields,
        }
    }
}

impl Event {
    /// Converts an event from the fields of its object.
    pub(crate) fn from_fields(mut fields: Map<String, Value>) -> Result<Self, serde_json::Error> {
        // Removed one by one, and not by an untagged enum, so that the fields of unknown types keep their order and their values.
        let kind = match fields.shift_remove("type") {
            Some(Value::String(kind)) => kind,
            Some(_) => return Err(serde_json::Error::custom("`type` is not a string")),
            None => return Err(serde_json::Error::missing_field("type")),
        };
        let ts = fields.shift_remove("ts").ok_or_else(|| serde_json::Error::missing_field("ts"))?;
        let ts = serde_json::from_value(ts)?;
        let body = match kind.as_str() {
            "tool_call" => EventBody::ToolCall(serde_json::from_value(Value::Object(fields))?),
            "tool_result" => EventBody::ToolResult(serde_json::from_value(Value::Object(fields))?),
            "retrieval" => EventBody::Retrieval(serde_json::from_value(Value::Object(fields))?),
            "final_output" => EventBody::FinalOutput(serde_json::from_value(Value::Object(fields))?),
            // A known type with wrong fields is an error above. Only the types that a later version may add are kept as they are.
            _ => EventBody::Unknown { kind, fields },
        };
        Ok(Event { ts, body })
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Map::<String, Value>::deserialize(deserializer)?;
        Event::from_fields(fields).map_err(D::Error::custom)
    }
}

/// The wire form: `type`, `ts` and the fields of the body in one object.
#[derive(Serialize)]
struct Wire<'a, B> {
    #[serde(rename = "type")]
    kind: &'a str,
    ts: &'a Millis,
    // The published format has the fields of a type next to `type` and `ts`.
    #[serde(flatten)]
    body: &'a B,
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (kind, ts) = (self.kind(), &self.ts);
        match &self.body {
            EventBody::ToolCall(body) => Wire { kind, ts, body }.serialize(serializer),
            EventBody::ToolResult(body) => Wire { kind, ts, body }.serialize(serializer),
            EventBody::Retrieval(body) => Wire { kind, ts, body }.serialize(serializer),
            EventBody::FinalOutput(body) => Wire { kind, ts, body }.serialize(serializer),
            EventBody::Unknown { fields: body, .. } => Wire { kind, ts, body }.serialize(serializer),
        }
    }
}
