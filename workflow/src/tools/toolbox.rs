//! The tools by their names: what the model asks for, and what it gets.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use camino::Utf8PathBuf;
use counterproof_artifact::canonical::canonical_hash;
use counterproof_guard::identity::RunIdentity;
use counterproof_guard::policy::{Args, CallFacts, CallOutcome, Engine, Policy};
use counterproof_ledger::event::{Action, Transport};
use counterproof_safe_run::Cancellation;
use counterproof_sessions::event::{Command, FileOperation, ToolResult};
use serde_json::{Value, json};

use super::arguments::{ArgumentError, Arguments};
use super::definitions::definitions;
use super::sandbox::Sandbox;
use super::workspace_files::{FileError, WorkspaceFiles};
use super::{file_tools, search, shell};

/// The name under which a policy knows the tools.
const SERVER_NAME: &str = "agent";

/// How the tools of a run work.
#[derive(Debug, Clone)]
pub struct ToolOptions {
    /// The folder that the agent works in.
    pub workspace: Utf8PathBuf,
    /// A folder for temporary files of commands, outside of the workspace. It is created if it does not exist.
    pub private: Utf8PathBuf,
    /// Further files and folders that commands may read, where the sandbox would hide them.
    pub readable: Vec<Utf8PathBuf>,
    /// As in safe-run's options.
    pub supervisor: Option<PathBuf>,
    pub sandbox: Sandbox,
    pub policy: Option<AgentPolicy>,
}

impl ToolOptions {
    pub fn new(workspace: impl Into<Utf8PathBuf>, private: impl Into<Utf8PathBuf>, sandbox: Sandbox) -> Self {
        Self {
            workspace: workspace.into(),
            private: private.into(),
            readable: Vec::new(),
            supervisor: None,
            sandbox,
            policy: None,
        }
    }
}

/// A policy of the guard that decides each call. For it, the server's name is `agent`.
#[derive(Debug, Clone)]
pub struct AgentPolicy {
    pub policy: Arc<Policy>,
    pub identity: RunIdentity,
}

/// The tools of one run.
#[derive(Debug)]
pub struct Tools {
    options: ToolOptions,
    files: WorkspaceFiles,
    guard: Option<Guard>,
}

#[derive(Debug)]
struct Guard {
    engine: Mutex<Engine>,
    started: Instant,
}

/// What came of a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolOutcome {
    /// What the model gets.
    pub message: String,
    /// An object; the text of the model if it is not one.
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

/// A call that has run.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) message: String,
    /// The message before it was truncated.
    pub(super) content: String,
    pub(super) is_truncated: bool,
    /// Why the call failed, for a command with output.
    pub(super) error: Option<String>,
    pub(super) reads: Vec<FileOperation>,
    pub(super) command: Option<Command>,
    pub(super) is_interrupted: bool,
}

impl Done {
    pub(super) fn text(message: String) -> Self {
        Self { content: message.clone(), message, ..Self::default() }
    }
}

/// A call that could not run.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) message: String,
    pub(super) reads: Vec<FileOperation>,
    pub(super) is_interrupted: bool,
}

impl Failed {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), reads: Vec::new(), is_interrupted: false }
    }

    pub(super) fn interrupted(message: &str) -> Self {
        Self { is_interrupted: true, ..Self::new(message) }
    }

    pub(super) fn after(reads: Vec<FileOperation>, message: impl Into<String>) -> Self {
        Self { reads, ..Self::new(message) }
    }
}

impl From<ArgumentError> for Failed {
    fn from(error: ArgumentError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<FileError> for Failed {
    fn from(error: FileError) -> Self {
        Self::new(error.to_string())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    Read,
    Write,
    Edit,
    Search,
    Shell,
}

impl Tool {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "read" => Self::Read,
            "write" => Self::Write,
            "edit" => Self::Edit,
            "search" => Self::Search,
            "shell" => Self::Shell,
            _ => return None,
        })
    }
}

impl Tools {
    pub fn new(options: ToolOptions) -> Self {
        let files = WorkspaceFiles::new(options.workspace.clone());
        let guard = options.policy.as_ref().map(|AgentPolicy { policy, identity }| Guard {
            engine: Mutex::new(Engine::new(policy.clone(), identity)),
            started: Instant::now(),
        });
        Self { options, files, guard }
    }

    pub const fn sandbox(&self) -> Sandbox {
        self.options.sandbox
    }

    /// Returns the `tools` of a request. The value is always the same.
    pub fn definitions() -> Value {
        definitions()
    }

    /// Runs a call. `arguments` is the JSON text of the model.
    pub fn run(&self, name: &str, arguments: &str, cancel: &Cancellation) -> ToolOutcome {
        let Some(tool) = Tool::from_name(name) else {
            let name = counterproof_artifact::one_line(name, 80);
            let parsed = Arguments::parse(arguments).map(|arguments| arguments.to_value());
            let text = || Value::String(arguments.to_owned());
            return failed(Failed::new(format!("unknown tool `{name}`")), parsed.unwrap_or_else(|_| text()));
        };
        let parsed = match Arguments::parse(arguments) {
            Ok(parsed) => parsed,
            Err(error) => return failed(error.into(), Value::String(arguments.to_owned())),
        };
        let value = parsed.to_value();
        if let Some((message, decision)) = self.refusal(name, &value) {
            return ToolOutcome { decision: Some(decision), ..failed(Failed::new(message), value) };
        }
        let done = match tool {
            Tool::Read => file_tools::read(&self.files, &parsed),
            Tool::Write => file_tools::write(&self.files, &parsed),
            Tool::Edit => file_tools::edit(&self.files, &parsed),
            Tool::Search => search::search(&self.files, &parsed, cancel),
            Tool::Shell => shell::shell(&self.options, &parsed, cancel),
        };
        let mut outcome = done.map_or_else(|error| failed(error, value.clone()), |done| ended(done, value.clone()));
        if tool == Tool::Shell {
            outcome.result.sandbox = Some(self.options.sandbox.name().to_owned());
        }
        self.count_outcome(name, outcome.result.success != Some(true));
        outcome
    }

    /// Asks the policy. Returns the message and the decision of a refusal.
    fn refusal(&self, name: &str, arguments: &Value) -> Option<(String, Value)> {
        let guard = self.guard.as_ref()?;
        let (args_hash, bytes_in) = (canonical_hash(arguments), arguments.to_string().len() as u64);
        let call = CallFacts {
            server_name: SERVER_NAME,
            tool_name: name,
            args: Args::Inspected(arguments),
            args_hash: &args_hash,
            bytes_in,
            transport: Transport::Unknown,
        };
        let mut engine = guard.engine.lock().unwrap_or_else(PoisonError::into_inner);
        let decision = engine.decide(&call, guard.started.elapsed()).record;
        if decision.action == Action::Allow {
            return None;
        }
        let rule = decision.rule_id.as_deref().unwrap_or("the policy");
        let mut message = format!("refused by {rule}: {}", decision.explain.summary);
        if let Some(hint) = &decision.hint {
            message.push_str("; ");
            message.push_str(&hint.hint_text);
        }
        let reason = &decision.explain.reason_code;
        let recorded = json!({"action": decision.action, "rule_id": decision.rule_id, "reason_code": reason});
        Some((message, recorded))
    }

    fn count_outcome(&self, name: &str, is_error: bool) {
        let Some(guard) = &self.guard else { return };
        let outcome = CallOutcome { server_name: SERVER_NAME, tool_name: name, is_error };
        let mut engine = guard.engine.lock().unwrap_or_else(PoisonError::into_inner);
        engine.record_outcome(&outcome, guard.started.elapsed());
    }
}

fn ended(done: Done, arguments: Value) -> ToolOutcome {
    let Done { message, content, is_truncated, error, reads, command, is_interrupted: interrupted } = done;
    let result = ToolResult {
        success: Some(error.is_none()),
        content: Some(content),
        truncated: Some(is_truncated),
        error,
        sandbox: None,
    };
    ToolOutcome { message, arguments, result, reads, command, interrupted, decision: None }
}

fn failed(Failed { message, reads, is_interrupted: interrupted }: Failed, arguments: Value) -> ToolOutcome {
    let shown = format!("error: {message}");
    let result = ToolResult {
        success: Some(false),
        content: Some(shown.clone()),
        truncated: Some(false),
        error: Some(message),
        sandbox: None,
    };
    ToolOutcome { message: shown, arguments, result, reads, interrupted, ..ToolOutcome::default() }
}
