//! The fields that every event has.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The fields that every event has, except `type`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// The version of the event format.
    pub v: String,
    /// The time of the event.
    pub ts: Timestamp,
    /// The run. All programs that `guard run` starts share it.
    pub run_id: String,
    /// The number of the event within its source, from 1. Run, shim and number identify an event. Events of other producers may
    /// lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The agent; `unknown` if it is not named.
    pub agent_id: String,
    /// The kind of program that the agent runs in.
    pub client: AgentClient,
    /// The environment that the agent works in.
    pub env: WorkingEnvironment,
    /// The process that emitted the event.
    pub source: EventSource,
    /// The person or service on whose behalf the agent works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// The job that the agent runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<Workload>,
}

/// The process that emitted an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventSource {
    /// The name of the machine.
    pub host_id: String,
    pub proc_id: String,
    /// A unique id of the shim or proxy.
    pub shim_id: String,
}

/// The kind of program that an agent runs in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentClient {
    /// Claude Code or Claude Desktop.
    Claude,
    Codex,
    /// A program without a user interface.
    Headless,
    /// Another program.
    Custom,
    /// Not stated, or a value that this version does not know.
    #[default]
    #[serde(other)]
    Unknown,
}

impl AgentClient {
    /// All kinds of program.
    pub const ALL: [AgentClient; 5] =
        [AgentClient::Claude, AgentClient::Codex, AgentClient::Headless, AgentClient::Custom, AgentClient::Unknown];

    /// The name in events and policies.
    pub const fn name(self) -> &'static str {
        match self {
            AgentClient::Claude => "claude",
            AgentClient::Codex => "codex",
            AgentClient::Headless => "headless",
            AgentClient::Custom => "custom",
            AgentClient::Unknown => "unknown",
        }
    }
}

/// The environment that an agent works in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkingEnvironment {
    /// The machine of a developer.
    Dev,
    /// A CI job.
    Ci,
    /// Production.
    Prod,
    /// Not stated, or a value that this version does not know.
    #[default]
    #[serde(other)]
    Unknown,
}

impl WorkingEnvironment {
    pub const ALL: [WorkingEnvironment; 4] =
        [WorkingEnvironment::Dev, WorkingEnvironment::Ci, WorkingEnvironment::Prod, WorkingEnvironment::Unknown];

    /// The name in events and policies.
    pub const fn name(self) -> &'static str {
        match self {
            WorkingEnvironment::Dev => "dev",
            WorkingEnvironment::Ci => "ci",
            WorkingEnvironment::Prod => "prod",
            WorkingEnvironment::Unknown => "unknown",
        }
    }
}

/// The job that an agent runs in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Workload {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The path of the checkout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo_path: Option<String>,
    /// The CI system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci_provider: Option<String>,
    /// The CI job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// The repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}
