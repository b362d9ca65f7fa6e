//! Obtains the output of a contract: from a file, or from an agent command.

use camino::Utf8Path;
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
    /// Takes the output of a file.
    pub(super) fn from_file(output: Value) -> Self {
        Self { output: Ok(output), agent: None, interrupted: false }
    }
}

/// Reads the output file of a contract.
pub(super) fn read_output(path: &Utf8Path) -> Result<Value, ExecutionError> {
    let invalid = |problem: String| ExecutionError::Output { path: path.to_owned(), problem };
    let bytes = read_file::read_argument(path, MAX_AGENT_OUTPUT_BYTES)
        .map_err(|error| invalid(format!("cannot be read: {error}")))?;
    let parsed = DocumentText { file: path, bytes: &bytes, first_line: 1 }.parse_json();
    match (parsed.value, parsed.findings.first()) {
        (Some(value), None) => Ok(value),
        (_, Some(finding)) => {
            let place = finding.position.map_or_else(String::new, |it| format!("{}:{}: ", it.line, it.column));
            Err(invalid(format!("is not one JSON value: {place}{}", finding.message)))
        }
        (None, None) => Err(invalid("is not JSON".to_owned())),
    }
}

/// Obtains the output of a contract from the agent command. `environment` has the variables of its resources.
pub(super) fn obtain(
    contract: &Contract,
    settings: &RunSettings,
    environment: &super::Environment,
    evidence: &mut Evidence,
) -> Result<Obtained, ExecutionError> {
    let OutputSource::Command(line) = &settings.source else {
        return Ok(Obtained { output: Err(vec!["there is no output".to_owned()]), agent: None, interrupted: false });
    };
    from_agent(contract, line, settings, environment, evidence)
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
