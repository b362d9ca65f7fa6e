//! A session: what is known about it next to its records.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A session without its records and sums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionHead {
    /// Also the id of the run in the ledger.
    pub session_id: String,
    pub title: Option<String>,
    pub origin: Origin,
    /// The workflow, such as `fix_failing_test`.
    pub workflow: Option<String>,
    pub status: SessionStatus,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub parent: Option<Parent>,
    pub coverage: Coverage,
}

/// Where a session was forked from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    pub session_id: String,
    pub checkpoint_id: Option<String>,
}

/// The program or format that the records come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    Record,
    Workflow,
    ClaudeCode,
    Codex,
    Otlp,
    Openinference,
    Atif,
}

impl Origin {
    /// Returns the value of the field `origin`.
    pub const fn word(self) -> &'static str {
        match self {
            Origin::Record => "record",
            Origin::Workflow => "workflow",
            Origin::ClaudeCode => "claude-code",
            Origin::Codex => "codex",
            Origin::Otlp => "otlp",
            Origin::Openinference => "openinference",
            Origin::Atif => "atif",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    Running,
    Completed,
    Failed,
    Paused,
    /// The recorder was killed.
    Interrupted,
}

impl SessionStatus {
    /// Returns the value of the field `status`.
    pub const fn word(self) -> &'static str {
        match self {
            SessionStatus::Running => "running",
            SessionStatus::Completed => "completed",
            SessionStatus::Failed => "failed",
            SessionStatus::Paused => "paused",
            SessionStatus::Interrupted => "interrupted",
        }
    }
}

/// How much of what happened could be seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    pub llm_calls: Share,
    pub tool_calls: Share,
    pub files: Share,
    pub commands: Share,
}

impl Coverage {
    /// Returns the larger share of each.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            llm_calls: self.llm_calls.max(other.llm_calls),
            tool_calls: self.tool_calls.max(other.tool_calls),
            files: self.files.max(other.files),
            commands: self.commands.max(other.commands),
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Share {
    #[default]
    None,
    Partial,
    All,
}
