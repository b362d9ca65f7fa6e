//! What a protocol adds for conversations in which the runner executes the tool calls of the model. Independent of the transport.

use serde_json::{Map, Value, json};

use super::answer;

/// A tool that the model may call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolDefinition {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    /// The JSON Schema of the arguments.
    pub(crate) parameters: Value,
}

/// A tool call that the caller of the model has to execute.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RequestedCall {
    /// The id in the protocol, for the result.
    pub(crate) id: String,
    pub(crate) kind: CallKind,
    pub(crate) tool: String,
    pub(crate) arguments: Map<String, Value>,
}

/// How a protocol names a call. A result has the same kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallKind {
    Function,
    /// A tool with free text as its input.
    Custom,
}

/// The result of a call, as the model receives it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CallResult {
    pub(crate) call: RequestedCall,
    pub(crate) text: String,
    pub(crate) is_error: bool,
}

/// What the runner needs of an answer to continue the conversation.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Reply {
    /// The messages that represent the answer in the next request.
    pub(crate) messages: Vec<Value>,
    /// The calls to execute, in the order of the tool calls in the artifact.
    pub(crate) calls: Vec<RequestedCall>,
}

/// A protocol whose answers ask the caller to execute tools. Its messages include `{"role": "user", "content": …}`.
pub(crate) trait Dialogue: Send + Sync {
    /// Reads an answer that [`ProtocolAdapter::answer`](super::ProtocolAdapter::answer) accepts.
    fn reply(&self, body: &[u8]) -> Reply;

    /// Returns the messages with the results of calls.
    fn results(&self, results: &[CallResult]) -> Vec<Value>;

    /// Returns a tool in the form of the request.
    fn definition(&self, tool: &ToolDefinition) -> Value;
}

impl RequestedCall {
    /// Creates a call from its fields in an answer. `None` without the name of a tool.
    pub(super) fn new(id: &Value, kind: CallKind, tool: &Value, arguments: &Value) -> Option<Self> {
        let arguments = match answer::arguments(arguments).0 {
            Value::Object(fields) => fields,
            other => Map::from_iter([(answer::RAW_ARGUMENTS.to_owned(), other)]),
        };
        let id = id.as_str().unwrap_or_default().to_owned();
        Some(Self { id, kind, tool: tool.as_str()?.to_owned(), arguments })
    }
}

/// Returns the name of a tool in the form of a request, of any protocol.
pub(super) fn name_of(definition: &Value) -> Option<&str> {
    definition["function"]["name"].as_str().or(definition["name"].as_str())
}

/// Returns a message of the user.
pub(crate) fn user_message(text: &str) -> Value {
    json!({"role": "user", "content": text})
}
