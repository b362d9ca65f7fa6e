//! The records of a session, in the form in which commands print them.
//!
//! Every field of a record is printed. A value that is not known is `null`, never 0 or an empty text. The fields that are
//! left out if they are `None` are additions to the published shapes.

use counterproof_artifact::Sha256Digest;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The name of the schema of records.
pub const EVENT_SCHEMA: &str = "session-event.v1";

/// The schema of records in their printed form.
pub const EVENT_SCHEMA_SOURCE: &str = include_str!("../../schemas/session-event.v1.schema.json");

/// A record, with the fields that all types have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionEvent {
    pub event_id: EventId,
    /// The number within the session, from 1 and without gaps. The store assigns it.
    #[serde(default)]
    pub seq: Option<u64>,
    /// When the operation began.
    pub timestamp: Timestamp,
    pub fidelity: Fidelity,
    /// The subagent, if it was not the main one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default)]
    pub error: Option<EventError>,
    #[serde(flatten)]
    pub body: EventBody,
}

impl SessionEvent {
    /// Creates a record that this process saw itself.
    pub fn captured(timestamp: Timestamp, body: EventBody) -> Self {
        let (seq, agent, error) = (None, None, None);
        Self { event_id: EventId::new_random(), seq, timestamp, fidelity: Fidelity::Captured, agent, error, body }
    }

    /// Creates a record from what another record or a file states. `key` is unique in the session: a record that is added
    /// again is the same record.
    pub fn reconstructed(key: &str, timestamp: Timestamp, body: EventBody) -> Self {
        let (seq, agent, error) = (None, None, None);
        let fidelity = Fidelity::Reconstructed;
        Self { event_id: EventId::from_key(key), seq, timestamp, fidelity, agent, error, body }
    }
}

/// Identifies a record within its session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventId(String);

impl EventId {
    /// Creates a new id, a UUID of version 7.
    pub fn new_random() -> Self {
        Self(uuid::Uuid::now_v7().to_string())
    }

    /// Returns the id that belongs to a key.
    pub fn from_key(key: &str) -> Self {
        // A digest, because keys are texts of others, of any length.
        Self(Sha256Digest::from_bytes(key.as_bytes()).to_string()[..32].to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// How a record came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fidelity {
    /// This program saw the operation itself.
    Captured,
    /// It follows from what the model was sent, or from a file of another program.
    Reconstructed,
}

/// Why an operation failed. A failed operation is a record like any other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventError {
    /// `http`: an answer with an error status; `cut`: the answer ended early; `network`: no answer; `source`: an imported
    /// file states an error; `recording`: the operation went well, and its record is incomplete.
    pub kind: String,
    /// The HTTP status of the answer.
    pub status: Option<u16>,
    pub message: String,
}

/// What the type of a record adds. The field `type` names the variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "most records are model calls; boxes would only cost allocations")]
pub enum EventBody {
    LlmCall(LlmCall),
    ToolCall(ToolCall),
    StateTransition(StateTransition),
    Checkpoint(Checkpoint),
    FileOperation(FileOperation),
    Command(Command),
    Opaque(Opaque),
}

impl EventBody {
    /// All values of the field `type`.
    pub const TYPES: [&str; 7] =
        ["llm_call", "tool_call", "state_transition", "checkpoint", "file_operation", "command", "opaque"];

    pub const fn kind(&self) -> &'static str {
        match self {
            EventBody::LlmCall(_) => Self::TYPES[0],
            EventBody::ToolCall(_) => Self::TYPES[1],
            EventBody::StateTransition(_) => Self::TYPES[2],
            EventBody::Checkpoint(_) => Self::TYPES[3],
            EventBody::FileOperation(_) => Self::TYPES[4],
            EventBody::Command(_) => Self::TYPES[5],
            EventBody::Opaque(_) => Self::TYPES[6],
        }
    }
}

/// One request to a model and its answer. A retry is a record of its own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LlmCall {
    pub request: LlmRequest,
    /// `None` if there was no answer.
    pub response: Option<LlmResponse>,
    /// Time from the request to the end of the answer.
    pub latency_ms: Option<u64>,
    /// What the source states, in its currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

/// A request as it was sent. A field that the body does not have is `null`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LlmRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<Api>,
    pub model: Option<String>,
    /// An array: the whole history. For the Responses API, its `input`.
    pub messages: Value,
    pub tools: Value,
    pub temperature: Value,
    pub max_tokens: Value,
    /// The whole body.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub body: Value,
}

impl LlmRequest {
    /// Removes the history and the tools from the body where the other fields have them: they are most of a request.
    pub fn remove_copies(&mut self) {
        let Value::Object(body) = &mut self.body else { return };
        for (name, copy) in [("messages", &self.messages), ("input", &self.messages), ("tools", &self.tools)] {
            if body.get(name) == Some(copy) {
                body.remove(name);
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Api {
    /// `…/chat/completions`
    OpenaiChat,
    /// `…/responses`
    OpenaiResponses,
    /// `…/messages`
    AnthropicMessages,
}

/// An answer, in one form for all protocols.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LlmResponse {
    /// The joined text; `null` where there was none.
    pub content: Option<String>,
    pub tool_calls: Vec<RequestedCall>,
    /// `null` where none was sent.
    pub usage: Option<Usage>,
    /// The word of the protocol; for the Responses API its `status`.
    pub finish_reason: Option<String>,
    /// The model that answered, if the answer states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The answer as the protocol has it without streaming.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub body: Value,
}

/// A tool call that a model asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestedCall {
    pub id: Option<String>,
    #[serde(rename = "type")]
    pub kind: FunctionType,
    pub function: RequestedFunction,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FunctionType {
    #[default]
    Function,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestedFunction {
    pub name: String,
    /// JSON text as the model wrote it, which may be invalid.
    pub arguments: String,
}

impl RequestedCall {
    pub fn new(id: Option<String>, name: String, arguments: String) -> Self {
        Self { id, kind: FunctionType::Function, function: RequestedFunction { name, arguments } }
    }
}

/// Tokens. Prompt tokens include cached ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub prompt_tokens: Option<u64>,
    pub completion_tokens: Option<u64>,
    /// Prompt and completion.
    pub total_tokens: Option<u64>,
    /// Prompt tokens that were read from a cache.
    pub cached_tokens: Option<u64>,
}

impl Usage {
    /// `total_tokens` is the sum of what is known.
    pub fn new(prompt_tokens: Option<u64>, completion_tokens: Option<u64>, cached_tokens: Option<u64>) -> Self {
        let total_tokens = match (prompt_tokens, completion_tokens) {
            (None, None) => None,
            (prompt, completion) => Some(prompt.unwrap_or(0).saturating_add(completion.unwrap_or(0))),
        };
        Self { prompt_tokens, completion_tokens, total_tokens, cached_tokens }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The name by which the model knows the tool, or `SERVER.TOOL` for a call that the guard saw.
    pub tool_name: String,
    /// An object. A text if the model wrote invalid JSON.
    pub arguments: Value,
    pub result: ToolResult,
    pub latency_ms: Option<u64>,
    /// The id of the call in its protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// What the guard decided, if it did not allow the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Value>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    pub success: Option<bool>,
    /// The whole output, before it was truncated for the model.
    pub content: Option<String>,
    pub truncated: Option<bool>,
    pub error: Option<String>,
    /// The sandbox of a command: `landlock`, `bwrap` or `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StateTransition {
    pub from_state: String,
    pub to_state: String,
    /// What caused the transition, such as `compaction`.
    pub trigger: String,
    /// An object.
    pub context: Value,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    pub checkpoint_id: String,
    pub state: CheckpointState,
    pub resumable: bool,
    /// Why the session cannot continue from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckpointState {
    pub message_history: Vec<Value>,
    pub current_step: String,
    pub workspace: Value,
    pub tool_state: Value,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileOperation {
    pub operation: FileChange,
    /// Relative to the working tree, with forward slashes.
    pub path: String,
    /// The path before a rename.
    pub from_path: Option<String>,
    /// `None` if the file was created.
    pub before_sha256: Option<Sha256Digest>,
    /// `None` if the file was deleted.
    pub after_sha256: Option<Sha256Digest>,
    /// A unified diff; `None` for binary content.
    pub patch: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileChange {
    Create,
    Modify,
    Delete,
    Rename,
    Read,
}

impl FileChange {
    /// Returns the value of the field `operation`.
    pub const fn word(self) -> &'static str {
        match self {
            FileChange::Create => "create",
            FileChange::Modify => "modify",
            FileChange::Delete => "delete",
            FileChange::Rename => "rename",
            FileChange::Read => "read",
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    pub command: Option<CommandLine>,
    pub cwd: Option<String>,
    pub exit_code: Option<i64>,
    pub stdout: Option<String>,
    pub stderr: Option<String>,
    pub latency_ms: Option<u64>,
    /// The tool call that ran the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// The command failed, and had to: a workflow sees the test fail before it changes anything.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub expected_failure: bool,
}

impl Command {
    /// Whether the command failed and should not have; false if its exit code is not known.
    pub fn has_failed(&self) -> bool {
        !self.expected_failure && self.exit_code.is_some_and(|code| code != 0)
    }
}

/// A text for a shell, or a program with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CommandLine {
    Shell(String),
    Arguments(Vec<String>),
}

impl CommandLine {
    /// Returns the command as one line.
    pub fn text(&self) -> String {
        match self {
            CommandLine::Shell(text) => text.clone(),
            CommandLine::Arguments(arguments) => arguments.join(" "),
        }
    }

    /// Returns the text that a shell runs: for `bash -lc SCRIPT`, as several agents run all commands, the script.
    pub fn script(&self) -> String {
        match self {
            CommandLine::Arguments(arguments) => match arguments.as_slice() {
                [shell, option, script]
                    if shell.ends_with("sh") && option.starts_with('-') && option.ends_with('c') =>
                {
                    script.clone()
                }
                _ => self.text(),
            },
            CommandLine::Shell(_) => self.text(),
        }
    }
}

/// A line, span or step of an imported file whose type is not known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Opaque {
    pub data: Value,
}
