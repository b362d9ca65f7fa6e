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

/// A session that was forked from another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fork {
    pub session_id: String,
    /// The checkpoint of the parent; `None` for an imported fork.
    pub checkpoint_id: Option<String>,
    pub status: String,
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
    /// Returns what is known after the recorder was killed, or an operation was stopped: the last records may be missing.
    #[must_use]
    pub fn interrupted(self) -> Self {
        Self {
            llm_calls: self.llm_calls.min(Share::Partial),
            tool_calls: self.tool_calls.min(Share::Partial),
            files: self.files.min(Share::Partial),
            commands: self.commands.min(Share::Partial),
        }
    }

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

impl Share {
    /// Returns the value of a field of `coverage`.
    pub const fn word(self) -> &'static str {
        match self {
            Share::None => "none",
            Share::Partial => "partial",
            Share::All => "all",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::FileChange;

    #[test]
    fn the_words_of_values_are_those_by_which_they_are_written() {
        use FileChange::{Create, Delete, Modify, Read, Rename};
        use Origin::{Atif, ClaudeCode, Codex, Openinference, Otlp, Record, Workflow};
        use SessionStatus::{Completed, Failed, Interrupted, Paused, Running};
        let written = |value: serde_json::Value| value.as_str().map(str::to_owned);
        for origin in [Record, Workflow, ClaudeCode, Codex, Otlp, Openinference, Atif] {
            assert_eq!(written(serde_json::to_value(origin).unwrap()).as_deref(), Some(origin.word()));
        }
        for status in [Running, Completed, Failed, Paused, Interrupted] {
            assert_eq!(written(serde_json::to_value(status).unwrap()).as_deref(), Some(status.word()));
        }
        for share in [Share::None, Share::Partial, Share::All] {
            assert_eq!(written(serde_json::to_value(share).unwrap()).as_deref(), Some(share.word()));
        }
        for change in [Create, Modify, Delete, Rename, Read] {
            assert_eq!(written(serde_json::to_value(change).unwrap()).as_deref(), Some(change.word()));
        }
    }
}
