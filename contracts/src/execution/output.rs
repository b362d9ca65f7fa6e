//! Obtains the output of a contract: from a file, or from an agent command.

use camino::Utf8Path;
use counterproof_redaction::Applied;
use counterproof_store::read_file;
use counterproof_validation::DocumentText;
use serde_json::Value;

use super::evidence::Evidence;
use super::outcome::AgentRun;
use super::settings::output_in;
use super::{Environment, ExecutionError, OutputSource, RunSettings};
use crate::contract::{Contract, ContractId};
use crate::process::{
    EvidenceFolder, MAX_AGENT_OUTPUT_BYTES, ShellCommand, StopReason, agent_command, agent_output, run,
};

/// The output of a contract, or the reasons why it is missing.
#[derive(Debug)]
pub(super) struct Obtained {
    /// The output, or the reasons why the contract fails without one.
    pub(super) output: Result<Value, Vec<String>>,
    /// The agent command, if there was one.
    pub(super) agent: Option<AgentRun>,
    /// True if the agent was interrupted.
    pub(super) interrupted: bool,
}

/// Where the output of one contract comes from.
#[derive(Debug)]
pub(super) enum OutputOf<'a> {
    /// It was read from a file.
    File(Value),
    /// An agent command will print it.
    Agent(&'a str),
}

impl<'a> OutputOf<'a> {
    /// Reads the output file of a contract, unless an agent command makes the output.
    pub(super) fn prepare(source: &'a OutputSource, id: &ContractId) -> Result<Self, ExecutionError> {
        match source {
            OutputSource::File(path) => Ok(OutputOf::File(read_output(path)?)),
            OutputSource::Folder(folder) => Ok(OutputOf::File(read_output(&output_in(folder, id))?)),
            OutputSource::Command(line) => Ok(OutputOf::Agent(line)),
        }
    }

    /// Obtains the output. `environment` has the variables for an agent command.
    pub(super) fn obtain(
        self,
        contract: &Contract,
        settings: &RunSettings,
        environment: &Environment,
        evidence: &mut Evidence,
    ) -> Result<Obtained, ExecutionError> {
        match self {
            OutputOf::File(output) => Ok(Obtained { output: Ok(output), agent: None, interrupted: false }),
            OutputOf::Agent(line) => from_agent(contract, line, settings, environment, evidence),
        }
    }
}

/// Reads the output file of a contract.
fn read_output(path: &Utf8Path) -> Result<Value, ExecutionError> {
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

fn from_agent(
    contract: &Contract,
    line: &str,
    settings: &RunSettings,
    environment: &Environment,
    evidence: &mut Evidence,
) -> Result<Obtained, ExecutionError> {
    let mut command: ShellCommand = agent_command(contract, line, &settings.workdir)?;
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
