//! The start and the end of a tool call, and the decision about it.

use std::fmt;

use counterproof_artifact::Sha256Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::PolicyRef;

/// The id of a call, unique in all runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(String);

impl CallId {
    /// Creates a new id, a UUID of version 7.
    pub fn new_random() -> Self {
        Self(uuid::Uuid::now_v7().to_string())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The fields by which every event about a call names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallRef {
    pub call_id: CallId,
    pub server_name: String,
    pub tool_name: String,
    /// SHA-256 of the canonical arguments.
    pub args_hash: Sha256Digest,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallStart {
    #[serde(flatten)]
    pub call: CallRef,
    pub transport: Transport,
    pub bytes_in: u64,
    pub preview: ArgsPreview,
    /// The number of the call within its source, from 1.
    pub seq: u64,
    /// Risk classes that tag rules have added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The time limit of the call, if the client states one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// SHA-256 of the bytes of the arguments, if they are too large to be inspected. `args_hash` is the same value then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args_stream_hash: Option<Sha256Digest>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    McpStdio,
    McpHttp,
    MessagesApi,
    Http,
    /// A value that this version does not know.
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArgsPreview {
    pub truncated: bool,
    /// JSON text. `[TRUNCATED]` if the arguments are too large to be inspected; missing if the preview was dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args_preview: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultPreview {
    pub truncated: bool,
    /// JSON text; see [`ArgsPreview::args_preview`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_preview: Option<String>,
}

/// The fields of `tool_call_end` next to the envelope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallEnd {
    pub call: CallRef,
    pub status: CallStatus,
    /// Time from the request to the end of the response in milliseconds, rounded up.
    pub latency_ms: u64,
    pub bytes_out: u64,
    pub preview: ResultPreview,
    /// The error, unless the status is `OK`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<CallError>,
    /// SHA-256 of the bytes of the result, if the preview is not the whole text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_stream_hash: Option<Sha256Digest>,
}

named_enum! {
    pub enum CallStatus {
        Ok = "OK",
        Error = "ERROR",
        Timeout = "TIMEOUT",
        Cancelled = "CANCELLED",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallError {
    pub class: ErrorClass,
    /// One line without stack traces, redacted.
    pub message: String,
    /// The code of the protocol, such as the number of a JSON-RPC error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// True if the same call may succeed later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    UpstreamError,
    PolicyBlock,
    Timeout,
    /// The server has ended, or its answer was not a message of the protocol.
    Transport,
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakerTrip {
    pub rule_id: String,
    pub trigger: String,
    pub count: u64,
    /// The length of the window in milliseconds.
    pub window_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DecisionRecord {
    pub action: Action,
    /// The rule that decided; `null` for the default.
    pub rule_id: Option<String>,
    pub severity: Severity,
    pub explain: Explanation,
    pub policy: PolicyRef,
    /// Time to wait before the next attempt, for `THROTTLE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<Hint>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminate: Option<Termination>,
    /// What the rules would have decided, in observe mode. `action` is `ALLOW` then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<ObservedDecision>,
}

impl DecisionRecord {
    pub fn new(action: Action, severity: Severity, explain: Explanation, policy: PolicyRef) -> Self {
        let (rule_id, backoff_ms, hint, terminate, observed) = Default::default();
        Self { action, rule_id, severity, explain, policy, backoff_ms, hint, terminate, observed }
    }

    /// Returns what the rules decide, whether or not the policy enforces it.
    pub fn by_rules(&self) -> ObservedDecision {
        self.observed.clone().unwrap_or_else(|| ObservedDecision {
            action: self.action,
            rule_id: self.rule_id.clone(),
            reason_code: self.explain.reason_code.clone(),
        })
    }
}

named_enum! {
    pub enum Action {
        Allow = "ALLOW",
        Block = "BLOCK",
        Throttle = "THROTTLE",
        /// It is refused, and the agent receives a hint.
        RejectWithHint = "REJECT_WITH_HINT",
        TerminateRun = "TERMINATE_RUN",
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    #[default]
    Info,
    Warn,
    Critical,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    pub summary: String,
    pub reason_code: String,
}

/// What an agent can do instead of a refused call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hint {
    pub hint_text: String,
    pub suggested_args: Option<Value>,
    pub retry_advice: Option<String>,
    pub hint_kind: HintKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum HintKind {
    ArgFix,
    Budget,
    Rate,
    /// The call is unsafe.
    Safety,
    #[serde(other)]
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Termination {
    pub terminate_code: String,
    pub terminate_message: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedDecision {
    pub action: Action,
    pub rule_id: Option<String>,
    pub reason_code: String,
}
