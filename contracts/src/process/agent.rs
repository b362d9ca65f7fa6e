//! A program as the agent of a contract: the contract's input on standard input, the output on standard output, both JSON.

use std::ffi::OsString;

use camino::Utf8Path;
use counterproof_safe_run::Ending;
use counterproof_validation::{DocumentText, Finding};
use serde_json::Value;

use super::{FinishedCommand, ShellCommand, StopReason};
use crate::contract::Contract;

/// Maximum size of an agent's output.
pub const MAX_AGENT_OUTPUT_BYTES: u64 = 16 << 20;

/// The name of the standard output in findings.
const STDOUT: &str = "stdout of the agent";

/// An agent without a valid output.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error("the agent has no output: {0}")]
    Stopped(StopReason),
    #[error("the agent failed: {0}")]
    Failed(Ending),
    /// The output is too large.
    #[error("the output of the agent is larger than the limit of {MAX_AGENT_OUTPUT_BYTES} bytes")]
    TooLarge,
    /// The output is not JSON.
    #[error("the output of the agent is not one JSON value: {}", first(.0))]
    NotJson(Vec<Finding>),
}

impl AgentError {
    /// The stable code.
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
    let mut input = serde_json::to_vec(&contract.input)?;
    input.push(b'\n');
    let mut command = ShellCommand::new(line, folder);
    command.input = input;
    command.stdout_limit = MAX_AGENT_OUTPUT_BYTES;
    command.environment.extend(contract_variables(contract));
    Ok(command)
}

/// Returns the variables by which the commands of a contract know it.
pub fn contract_variables(contract: &Contract) -> [(OsString, Option<OsString>); 2] {
    [
        ("COUNTERPROOF_CONTRACT_ID".into(), Some(contract.id.as_str().into())),
        ("COUNTERPROOF_CONTRACT_VERSION".into(), Some(contract.version.to_string().into())),
    ]
}

/// Reads the output of an agent that has ended.
pub fn agent_output(agent: &FinishedCommand) -> Result<Value, AgentError> {
    if let Some(reason) = agent.stopped {
        return Err(AgentError::Stopped(reason));
    }
    if !agent.ending.is_success() {
        return Err(AgentError::Failed(agent.ending));
    }
    if agent.stdout.is_cut {
        return Err(AgentError::TooLarge);
    }
    parse(&agent.stdout.bytes)
}

/// Parses JSON strictly: a key that occurs twice has no agreed value.
fn parse(bytes: &[u8]) -> Result<Value, AgentError> {
    let checked = DocumentText { file: Utf8Path::new(STDOUT), bytes, first_line: 1 }.parse_json();
    match checked.value {
        Some(value) if checked.findings.is_empty() => Ok(value),
        _ => Err(AgentError::NotJson(checked.findings)),
    }
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
