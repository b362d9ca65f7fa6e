//! The start and the end of a run, and the secrets that its server received.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The field of `meta` in `run_start` that states what a source records.
pub const SOURCE_KIND: &str = "kind";

/// The kind of a source that records an agent. Other sources record a server.
pub const AGENT_SOURCE: &str = "agent";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunStart {
    pub started_at: Timestamp,
    pub mode: Mode,
    pub policy: PolicyRef,
    /// Facts about the run, such as the name of the server. That of an agent has the [`SOURCE_KIND`] [`AGENT_SOURCE`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
}

impl RunStart {
    /// True if the source records an agent, and not a server.
    pub fn is_of_agent(&self) -> bool {
        self.meta.as_ref().is_some_and(|meta| meta.get(SOURCE_KIND).is_some_and(|kind| kind == AGENT_SOURCE))
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Every call is allowed; the events state what the rules would have decided.
    #[default]
    Observe,
    Guardrails,
    /// Rules block calls, and the agent receives a hint instead of a plain refusal.
    Control,
}

/// A policy, by name, version and content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyRef {
    pub policy_id: String,
    pub policy_version: String,
    /// SHA-256 of its canonical content, or `none` without a policy.
    pub policy_hash: String,
}

/// A policy with its rules, so that a decision can be explained after its file is gone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadedPolicy {
    pub policy_id: String,
    pub policy_version: String,
    pub policy_hash: String,
    /// The rules as JSON, with secrets masked. Missing in older events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEnd {
    pub ended_at: Timestamp,
    pub status: RunStatus,
    pub summary: RunSummary,
    /// How the process of the agent, or of the server of a shim, ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<ProcessExit>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessExit {
    Code(i32),
    Signal(i32),
    NotStarted(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RunStatus {
    /// The client ended the server, or the agent exited with code 0.
    Succeeded,
    /// The server or the agent failed, crashed, or could not be started.
    Failed,
    Terminated,
    Cancelled,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSummary {
    pub calls_total: u64,
    pub calls_allowed: u64,
    /// Number of calls that a rule refused, except throttled ones.
    pub calls_blocked: u64,
    pub calls_throttled: u64,
    /// Number of calls that did not end with `OK`, refused ones included.
    pub errors_total: u64,
    /// Time from start to end, in milliseconds.
    pub duration_ms: u64,
}

/// The field `secret_injection` of the event of that name.
///
/// The fields are in a nested object, since the envelope has another field `source`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretInjection {
    pub inject_as: String,
    pub secret_ref: String,
    pub source: SecretSource,
    pub success: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretSource {
    #[default]
    Env,
    Keychain,
    File,
}
