//! The tools by their names: what the model asks for, and what it gets.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use counterproof_guard::identity::RunIdentity;
use counterproof_guard::policy::Policy;
use counterproof_safe_run::Cancellation;
use counterproof_sessions::event::{Command, FileOperation, ToolResult};
use serde_json::Value;

use super::sandbox::Sandbox;

#[derive(Debug, Clone)]
pub struct ToolOptions {
    /// The folder that the agent works in.
    pub workspace: Utf8PathBuf,
    /// A folder for temporary files of commands, outside of the workspace. It is created if it does not exist.
    pub private: Utf8PathBuf,
    /// As in safe-run's options.
    pub supervisor: Option<PathBuf>,
    /// The time limit of a command without `timeout_s`.
    pub shell_timeout: Duration,
    pub sandbox: Sandbox,
    /// Changes of the environment of commands, after secrets and variables of git were removed.
    pub environment: BTreeMap<OsString, Option<OsString>>,
    pub policy: Option<AgentPolicy>,
}

impl ToolOptions {
    pub fn new(workspace: impl Into<Utf8PathBuf>, private: impl Into<Utf8PathBuf>, sandbox: Sandbox) -> Self {
        Self {
            workspace: workspace.into(),
            private: private.into(),
            supervisor: None,
            shell_timeout: Duration::from_mins(2),
            sandbox,
            environment: BTreeMap::new(),
            policy: None,
        }
    }
}

/// A policy of the guard that decides each call. The server's name is `agent`.
#[derive(Debug, Clone)]
pub struct AgentPolicy {
    pub policy: Arc<Policy>,
    pub identity: RunIdentity,
}

/// The tools of one run.
#[derive(Debug)]
pub struct Tools {
    options: ToolOptions,
}

/// What came of a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolOutcome {
    /// What the model gets.
    pub message: String,
    /// An object; the text if it is not one.
    pub arguments: Value,
    /// The result for the record, with the whole content.
    pub result: ToolResult,
    /// The files that `read` and `edit` have read.
    pub reads: Vec<FileOperation>,
    /// The command that `shell` has run.
    pub command: Option<Command>,
    /// True if the call was cancelled.
    pub interrupted: bool,
    /// What the policy decided, if it refused the call.
    pub decision: Option<Value>,
}

impl Tools {
    pub fn new(options: ToolOptions) -> Self {
        Self { options }
    }

    pub const fn sandbox(&self) -> Sandbox {
        self.options.sandbox
    }

    /// Returns the `tools` of a request.
    pub fn definitions() -> Value {
        Value::Array(Vec::new())
    }

    /// Runs a call. `arguments` is the JSON text of the model.
    pub fn run(&self, name: &str, arguments: &str, cancel: &Cancellation) -> ToolOutcome {
        let _ = (name, arguments, cancel);
        ToolOutcome::default()
    }
}
