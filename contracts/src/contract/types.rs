//! The types of a contract, field for field as the contract schema defines them.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ContractId;

/// What an agent gets, what it must produce, how that is verified, how it is undone, and what it needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contract {
    /// The id, the same in all versions.
    pub id: ContractId,
    /// Counted from 1.
    pub version: NonZeroU32,
    /// The time of creation, in ISO 8601.
    pub created_at: String,
    /// What the agent receives.
    pub input: ContractInput,
    /// What the agent must produce.
    pub output: ContractOutput,
    /// The executable check.
    pub verification: Verification,
    /// How to undo the work if the check fails.
    pub rollback: Rollback,
    /// Contracts that must be completed first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dependencies: Option<Vec<ContractId>>,
    /// What the execution needs for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Vec<Resource>>,
    /// The project, the agent and a summary for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ContractMetadata>,
}

/// What the agent receives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContractInput {
    /// A name for the kind of input, such as `codebase_context`.
    #[serde(rename = "type")]
    pub input_type: String,
    /// The data for the agent.
    pub data: Value,
    /// Limits that the agent must respect. Assertions read them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constraints: Option<Map<String, Value>>,
}

/// What the agent must produce.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContractOutput {
    /// A name for the kind of output, such as `code_change`.
    #[serde(rename = "type")]
    pub output_type: String,
    /// The shape of the agent's output: the short form, such as `{"files": "string[]"}`, or a JSON Schema.
    pub schema: Value,
    /// Files that must exist afterwards, relative to the working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<Vec<String>>,
}

/// The executable check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verification {
    /// A command line for `sh -c`.
    pub command: String,
    /// The time limit of one attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// CEL expressions that must all be true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assertions: Option<Vec<String>>,
    /// Further attempts if the check fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryConfig>,
}

/// Further attempts of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryConfig {
    /// The number of attempts after the first one.
    pub max: u32,
    /// The time between two attempts.
    pub delay_ms: u64,
}

/// How to undo the work of a contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RollbackStrategy {
    /// Resets the repository to the commit at which the execution began.
    GitReset,
    /// Restores the declared paths as they were when the execution began.
    RestoreSnapshot,
    /// Runs a command.
    Custom,
}

/// The undo procedure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rollback {
    /// The procedure.
    pub strategy: RollbackStrategy,
    /// A command line for `sh -c`, for [`RollbackStrategy::Custom`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom: Option<String>,
}

/// The kind of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceType {
    /// A TCP port.
    Port,
    /// A name that one execution at a time may hold.
    Session,
    /// Paths that one execution at a time may change.
    FileLock,
    /// An environment variable.
    Env,
}

/// Something that an execution needs for itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resource {
    /// The kind.
    #[serde(rename = "type")]
    pub resource_type: ResourceType,
    /// The details, whose form depends on the kind.
    pub spec: Value,
}

/// Data for people and other tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContractMetadata {
    /// The project that the contract belongs to.
    pub project: String,
    /// The agent that should do the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// One line for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub human_summary: Option<String>,
}

impl Contract {
    /// Returns the ids of the dependencies.
    pub fn dependencies(&self) -> &[ContractId] {
        self.dependencies.as_deref().unwrap_or_default()
    }

    pub fn resources(&self) -> &[Resource] {
        self.resources.as_deref().unwrap_or_default()
    }

    /// Returns the declared artifacts.
    pub fn artifacts(&self) -> &[String] {
        self.output.artifacts.as_deref().unwrap_or_default()
    }

    /// Returns the project, or the first segment of the id.
    pub fn project(&self) -> &str {
        self.metadata.as_ref().map_or_else(|| self.id.project(), |metadata| &metadata.project)
    }

    /// Returns the summary for people, or the id.
    pub fn summary(&self) -> &str {
        let summary = self.metadata.as_ref().and_then(|metadata| metadata.human_summary.as_deref());
        summary.unwrap_or_else(|| self.id.as_str())
    }
}
