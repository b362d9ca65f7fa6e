//! Obtains the output of a contract: from a file, or from an agent command.

use counterproof_redaction::Applied;
use counterproof_store::read_file;
use counterproof_validation::DocumentText;
use serde_json::Value;

use super::evidence::Evidence;
use super::outcome::AgentRun;
use super::{ExecutionError, OutputSource, RunSettings};
use crate::contract::Contract;
use crate::process::{
    EvidenceFolder, MAX_AGENT_OUTPUT_BYTES, ShellCommand, StopReason, agent_command, agent_output, run,
};

/// An output, or why there is none.
#[derive(Debug)]
pub(super) struct Obtained {
    /// The output, or the reasons why the contract fails without one.
    pub(super) output: Result<Value, Vec<String>>,
    /// The agent command, if there was one.
    pub(super) agent: Option<AgentRun>,
    /// True if the agent was interrupted.
    pub(super) interrupted: bool,
}

impl Obtained {
    fn failed(reason: String) -> Self {
        Self { output: Err(vec![reason]), agent: None, interrupted: false }
    }
}

/// Obtains the output of a contract. `environment` has the variables of its resources.
pub(super) fn obtain(
    contract: &Contract,
    settings: &RunSettings,
    environment: &super::Environment,
    evidence: &mut Evidence,
) -> Result<Obtained, ExecutionError> {
    match (&settings.source, settings.source.file(&contract.id)) {
        (OutputSource::Command(line), _) => from_agent(contract, line, settings, environment, evidence),
        (_, Some(path)) => Ok(from_file(&path)),
        // Only a command has no file.
        (_, None) => Ok(Obtained::failed("there is no output".to_owned())),
    }
}

fn from_file(path: &camino::Utf8Path) -> Obtained {
    let bytes = match read_file::read_argument(path, MAX_AGENT_OUTPUT_BYTES) {
        Ok(bytes) => bytes,
        Err(error) => return Obtained::failed(format!("the output `{path}` cannot be read: {error}")),
    };
    let parsed = DocumentText { file: path, bytes: &bytes, first_line: 1 }.parse_json();
    let output = match (parsed.value, parsed.findings.first()) {
        (Some(value), None) => Ok(value),
        (_, Some(finding)) => {
            let place = finding.position.map_or_else(String::new, |it| format!("{}:{}: ", it.line, it.column));
            Err(vec![format!("the output `{path}` is not one JSON value: {place}{}", finding.message)])
        }
        (None, None) => Err(vec![format!("the output `{path}` is not JSON")]),
    };
    Obtained { output, agent: None, interrupted: false }
}

fn from_agent(
    contract: &Contract,
    line: &str,
    settings: &RunSettings,
    environment: &super::Environment,
    evidence: &mut Evidence,
) -> Result<Obtained, ExecutionError> {
    let mut command: ShellCommand = agent_command(contract, line, settings.folder())?;
    command.environment.extend(environment.clone());
    command.timeout = settings.agent_timeout;
    command.supervisor.clone_from(&settings.supervisor);
    let finished = run(&command, &settings.cancellation)?;
    let output = agent_output(&finished).map_err(|error| vec![error.to_string()]);
    let (exit_code, duration) = (finished.exit_code(), finished.duration);
    let interrupted = finished.stopped == Some(StopReason::Cancelled);
    let folder = evidence.folder();
    let files = EvidenceFolder { path: &folder, redactor: &settings.redactor }.store("agent", finished)?;
    evidence.add_record(&files);
    let agent = AgentRun {
        command: settings.redactor.text(line, &mut Applied::default()),
        exit_code,
        duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        evidence: files,
    };
    Ok(Obtained { output, agent: Some(agent), interrupted })
}
