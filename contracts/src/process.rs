//! Runs one command of a contract under safe-run: in a working directory, with an environment, a time limit and a cancellation.
//! No process of the command is left when it has ended.
//!
//! ```text
//! ShellCommand ─▶ run ─▶ FinishedCommand: how it ended, the start of both streams, and the record ─▶ evidence: log, JSON Lines
//! ```
//!
//! The module does not judge an exit code and does not retry.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_redaction::{Applied, Redactor};
pub use counterproof_safe_run::{Cancellation, StopReason};
use counterproof_safe_run::{Command, Ending, Input, LogView, Options, OutputHead, Record, StartError, Stream};
use counterproof_store::write::{AtomicFile, Durability, WriteError, create_folder};
use counterproof_validation::{DocumentText, Finding};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::contract::Contract;

/// Maximum bytes of both streams of an agent together. An agent that prints more is killed.
pub const MAX_AGENT_OUTPUT_BYTES: u64 = 16 << 20;

/// The name of the standard output in findings.
const STDOUT: &str = "stdout of the agent";

#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error("the agent has no output: {0}")]
    Stopped(StopReason),
    #[error("the agent failed: {0}")]
    Failed(Ending),
    #[error("the output of the agent is larger than the limit of {MAX_AGENT_OUTPUT_BYTES} bytes")]
    TooLarge,
    #[error("the output of the agent is not one JSON value: {}", first(.0))]
    NotJson(Vec<Finding>),
}

impl AgentError {
    pub const fn code(&self) -> &'static str {
        match self {
            AgentError::Stopped(StopReason::TimedOut) => "agent_timed_out",
            AgentError::Stopped(StopReason::Cancelled) => "cancelled",
            AgentError::Stopped(StopReason::OutputTooLarge) | AgentError::TooLarge => "agent_output_too_large",
            AgentError::Failed(_) => "agent_failed",
            AgentError::NotJson(_) => "agent_output_not_json",
        }
    }
}

fn first(findings: &[Finding]) -> String {
    let Some(finding) = findings.first() else { return "it is empty".to_owned() };
    match finding.position {
        Some(position) => format!("line {}, column {}: {}", position.line, position.column, finding.message),
        None => finding.message.clone(),
    }
}

/// Creates the command of an agent. It reads the contract's `input` as one line of JSON, and knows the contract by the
/// variables `COUNTERPROOF_CONTRACT_ID` and `COUNTERPROOF_CONTRACT_VERSION`.
pub fn agent_command(contract: &Contract, line: &str, folder: &Utf8Path) -> Result<ShellCommand, serde_json::Error> {
    // One line, so that an agent in any language can read it with one call.
    let mut input = serde_json::to_vec(&contract.input)?;
    input.push(b'\n');
    let mut command = ShellCommand::new(line, folder);
    command.input = input;
    command.stdout_limit = MAX_AGENT_OUTPUT_BYTES;
    command.output_limit = MAX_AGENT_OUTPUT_BYTES;
    command.environment.extend(contract_variables(contract));
    Ok(command)
}

pub fn contract_variables(contract: &Contract) -> [(OsString, Option<OsString>); 2] {
    [
        ("COUNTERPROOF_CONTRACT_ID".into(), Some(contract.id.as_str().into())),
        ("COUNTERPROOF_CONTRACT_VERSION".into(), Some(contract.version.to_string().into())),
    ]
}

pub fn agent_output(agent: &FinishedCommand) -> Result<Value, AgentError> {
    // First, because a command that was killed also has an ending that looks like a failure.
    match agent.stopped {
        Some(StopReason::OutputTooLarge) => return Err(AgentError::TooLarge),
        Some(reason) => return Err(AgentError::Stopped(reason)),
        None => {}
    }
    if !agent.ending.is_success() {
        return Err(AgentError::Failed(agent.ending));
    }
    // A part of a JSON value could be a valid value itself.
    if agent.stdout.is_cut {
        return Err(AgentError::TooLarge);
    }
    parse(&agent.stdout.bytes)
}

fn parse(bytes: &[u8]) -> Result<Value, AgentError> {
    // Strictly: a key that occurs twice has no agreed value.
    let checked = DocumentText { file: Utf8Path::new(STDOUT), bytes, first_line: 1 }.parse_json();
    match checked.value {
        Some(value) if checked.findings.is_empty() => Ok(value),
        _ => Err(AgentError::NotJson(checked.findings)),
    }
}

/// The time limit of a command that has none of its own.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_mins(10);

/// How long a command may run after it was asked to end, before it is killed.
pub const DEFAULT_GRACE: Duration = Duration::from_secs(5);

/// Maximum bytes of both streams of a command together. A command that prints more is killed: its record would fill the disk.
pub const MAX_OUTPUT_BYTES: u64 = 256 << 20;

/// Maximum output in the evidence of an agent, or of all attempts of a check, in bytes; a line counts 128 bytes more. The rest is
/// left out, and the record states so.
pub const MAX_EVIDENCE_BYTES: u64 = 16 << 20;

/// What a record may have if the budget is used up, in bytes.
const MIN_EVIDENCE_BYTES: u64 = 64 << 10;

/// Maximum bytes of a stream that are returned as text.
pub const MAX_TEXT_BYTES: u64 = 1 << 20;

#[derive(Debug, Clone)]
pub struct ShellCommand {
    pub line: String,
    pub folder: Utf8PathBuf,
    /// Variables to set or to remove (`None`); the rest of the environment is that of this process.
    pub environment: BTreeMap<OsString, Option<OsString>>,
    pub input: Vec<u8>,
    /// The time limit. At its end, the command's process group gets TERM, and KILL after the grace time.
    pub timeout: Duration,
    pub grace: Duration,
    /// Maximum bytes of standard output that are returned.
    pub stdout_limit: u64,
    pub stderr_limit: u64,
    /// Maximum bytes of both streams together; the command is killed beyond it.
    pub output_limit: u64,
    /// The program that supervises the command, as in safe-run's options. `None` means this program, which then must call
    /// [`counterproof_safe_run::enter`] first in `main`.
    pub supervisor: Option<PathBuf>,
}

impl ShellCommand {
    pub fn new(line: impl Into<String>, folder: impl Into<Utf8PathBuf>) -> Self {
        Self {
            line: line.into(),
            folder: folder.into(),
            environment: BTreeMap::new(),
            input: Vec::new(),
            timeout: DEFAULT_TIMEOUT,
            grace: DEFAULT_GRACE,
            stdout_limit: MAX_TEXT_BYTES,
            stderr_limit: MAX_TEXT_BYTES,
            output_limit: MAX_OUTPUT_BYTES,
            supervisor: None,
        }
    }

    pub fn set(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) {
        self.environment.insert(name.into(), Some(value.into()));
    }
}

#[derive(Debug, Clone, Copy)]
pub struct EvidenceFolder<'a> {
    /// The folder. It is created if it does not exist.
    pub path: &'a Utf8Path,
    pub redactor: &'a Redactor,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceFiles {
    /// The log: both streams, and the ledger.
    pub log: String,
    pub events: String,
}

/// How much output the records of several commands may have together: the attempts of a check can be many.
#[derive(Debug)]
pub struct EvidenceBudget(u64);

impl Default for EvidenceBudget {
    fn default() -> Self {
        Self(MAX_EVIDENCE_BYTES)
    }
}

impl EvidenceFolder<'_> {
    /// Stores the record of a command as `<name>.log` and `<name>.jsonl`, as far as the budget allows. Both are on disk when this
    /// returns.
    pub fn store(
        &self,
        name: &str,
        command: FinishedCommand,
        budget: &mut EvidenceBudget,
    ) -> Result<EvidenceFiles, ProcessError> {
        // Both files are synced before the transition that names them, so the evidence of a recorded step exists.
        create_folder(self.path)?;
        let record_error = |source| ProcessError::Record { folder: self.path.to_owned(), source };
        // The start of each record is kept, however much the others have used.
        let (record, used) = command.record.cut(budget.0.max(MIN_EVIDENCE_BYTES)).map_err(record_error)?;
        budget.0 = budget.0.saturating_sub(used);
        // Redacted before the first byte is on the disk.
        let record = record.redacted(self.redactor).map_err(record_error)?;
        let log =
            self.write(&format!("{name}.log"), &record, |record, file| record.write_log(LogView::Ledger, file))?;
        let events = self.write(&format!("{name}.jsonl"), &record, Record::write_json_lines)?;
        Ok(EvidenceFiles { log, events })
    }

    pub fn redact(&self, text: &str) -> String {
        self.redactor.text(text, &mut Applied::default())
    }

    fn write(
        &self,
        name: &str,
        record: &Record,
        write: impl FnOnce(&Record, &mut AtomicFile) -> io::Result<()>,
    ) -> Result<String, ProcessError> {
        let path = self.path.join(name);
        let mut file = AtomicFile::create(&path)?;
        write(record, &mut file).map_err(|source| ProcessError::Record { folder: self.path.to_owned(), source })?;
        // Evidence is never replaced: a second record with the name would hide what the first attempt did.
        let written = file.commit_new([path.clone()], Durability::Synced)?;
        written.map(|_| name.to_owned()).ok_or(ProcessError::Exists(path))
    }
}

/// A command that has ended, with its output. The output is not redacted: it is for checks, and only the
/// [evidence](EvidenceFolder) may be stored.
#[derive(Debug)]
pub struct FinishedCommand {
    pub started_at: Timestamp,
    /// The time from the start until both streams were closed.
    pub duration: Duration,
    pub ending: Ending,
    pub stopped: Option<StopReason>,
    pub stdout: OutputHead,
    pub stderr: OutputHead,
    record: Record,
}

impl FinishedCommand {
    /// Returns the exit code as a shell reports it: the command's own, or 128 plus the number of the signal.
    pub fn exit_code(&self) -> i32 {
        self.ending.exit_code()
    }

    pub fn is_success(&self) -> bool {
        self.stopped.is_none() && self.ending.is_success()
    }

    /// The whole output, in the order in which it was read.
    pub const fn record(&self) -> &Record {
        &self.record
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    #[error("cancelled before the command was started")]
    Cancelled,
    #[error("cannot run the command `{line}`")]
    Start { line: String, source: StartError },
    #[error("cannot store the input or the output of the command `{line}`")]
    Storage { line: String, source: io::Error },
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("cannot store the record of a command in `{folder}`")]
    Record { folder: Utf8PathBuf, source: io::Error },
    #[error("`{0}` already exists; evidence is not overwritten")]
    Exists(Utf8PathBuf),
}

impl ProcessError {
    pub const fn code(&self) -> &'static str {
        match self {
            ProcessError::Cancelled => "cancelled",
            ProcessError::Start { .. } => "command_not_started",
            _ => "storage_error",
        }
    }
}

/// Runs a command until it ends, its limits are exceeded, or it is cancelled. No process of it is left then.
pub fn run(command: &ShellCommand, cancellation: &Cancellation) -> Result<FinishedCommand, ProcessError> {
    let storage = |source| ProcessError::Storage { line: command.line.clone(), source };
    let supervised = Command {
        options: Options {
            grace: command.grace,
            supervisor: command.supervisor.clone(),
            working_directory: Some(command.folder.clone().into_std_path_buf()),
            environment: command.environment.clone(),
            ..Options::default()
        },
        // A file and not a pipe: an agent that ignores its input must not block this program.
        input: Input::bytes(&command.input).map_err(storage)?,
        // Every command has a limit: a run over night must end.
        timeout: Some(command.timeout),
        output_limit: Some(command.output_limit),
        cancel: cancellation.clone(),
        ..Command::new(["sh", "-c", &command.line])
    };
    match supervised.run(&mut |_, _, _| {}) {
        Ok(record) => finish(record, command).map_err(storage),
        Err(StartError::Cancelled) => Err(ProcessError::Cancelled),
        Err(source) => Err(ProcessError::Start { line: command.line.clone(), source }),
    }
}

fn finish(mut record: Record, command: &ShellCommand) -> io::Result<FinishedCommand> {
    // A check must not judge output that is incomplete because the disk was full.
    if let Some(error) = record.capture_error.take() {
        return Err(error);
    }
    Ok(FinishedCommand {
        started_at: record.started_at,
        duration: record.elapsed,
        ending: record.ending,
        stopped: record.stopped,
        stdout: record.head(Stream::Stdout, command.stdout_limit)?,
        stderr: record.head(Stream::Stderr, command.stderr_limit)?,
        record,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_is_one_json_value_without_duplicate_keys() {
        assert_eq!(parse(b" {\"a\": [1]}\n").unwrap(), serde_json::json!({"a": [1]}));
        for (text, expected) in [
            ("", "the file is empty"),
            ("{\"a\": 1,\n x}", "line 2, column 2: key must be a string"),
            ("{} {}", "line 1, column 4: trailing characters"),
            ("{\"a\": 1, \"a\": 2}", "line 1, column 10: the key `a` appears twice in its object"),
        ] {
            let error = parse(text.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), format!("the output of the agent is not one JSON value: {expected}"));
            assert_eq!(error.code(), "agent_output_not_json");
        }
    }
}
