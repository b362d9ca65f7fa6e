//! Executions of contracts, so that two nights of contracts can be compared.
//!
//! Each contract is a case. The agent command, each attempt of the verification and the rollback are tool calls. The final
//! output states whether the contract is met, and why not. The records of the commands are assets.

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{
    AssetKind, Case, CaseId, Content, Count, EventBody, Extra, FailureClass, Millis, NameError, Nullable, Outcome,
    RunnerFailure, Side, ToolStatus,
};
use counterproof_contracts::contract::Contract;
use counterproof_contracts::execution::Execution;
use counterproof_contracts::execution::RollbackOutcome;
use counterproof_contracts::verification::{AssertionOutcome, FoundArtifact};
use counterproof_redaction::{Applied, Redactor};
use counterproof_store::write::WriteError;
use counterproof_store::{CreateError, read_file};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::cases_file::{self, CasesFileError, Existing};
use crate::run_builder::{Destination, RunBuilder, RunFacts, answer, attempt, millis, object, tool_call, tool_result};

/// The name of the cases file, in the folder of all runs.
pub const CASES_FILE: &str = "contracts.cases.json";

/// The expectation of every contract, as a CEL expression over the artifact of its case.
const EXPECTATION: &str = "final_output.content.met";

const WORKFLOW: &str = "contract";

/// The longest text of a stream in a case, in characters. The whole stream is in the record.
const TAIL_CHARS: usize = 4_000;

/// Writes the cases of these contracts to the cases file in a folder, in the order of their ids. Cases of other contracts stay.
pub fn write_cases<'c>(
    folder: &Utf8Path,
    redactor: &Redactor,
    contracts: impl Iterator<Item = &'c Contract>,
) -> Result<(), CasesFileError> {
    // A contract is the source of its case, so its changes replace what the file has.
    cases_file::write(
        &folder.join(CASES_FILE),
        Existing::Replace,
        contracts.map(|contract| {
            let id = contract.id.case_id()?;
            let mut case = json!({
                "id": id, "title": contract.summary(),
                "input": {"user": contract.summary(), "context": contract.input},
                "expected": {"expect": [{"name": "the contract is met", "expr": EXPECTATION}]},
            });
            // The input of a contract may contain a secret.
            redactor.json(&mut case, &mut Applied::default());
            Ok((id, case))
        }),
    )
}

#[derive(Debug, thiserror::Error)]
pub enum CaseRunError {
    #[error(transparent)]
    Create(#[from] CreateError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("cannot read `{path}`")]
    Read { path: Utf8PathBuf, source: std::io::Error },
    #[error(transparent)]
    Name(#[from] NameError),
}

/// A run folder of executions under construction. Threads can share it.
#[derive(Debug)]
pub struct CaseRun {
    run: RunBuilder,
    side: Side,
    started_at: Timestamp,
    redactor: Redactor,
}

impl CaseRun {
    /// Creates `<out>/<side>/<run id>/`, which must not exist. The redactor masks secrets in what the contracts state, such as their
    /// commands.
    pub fn create(
        destination: &Destination<'_>,
        started_at: Timestamp,
        redactor: Redactor,
    ) -> Result<Self, CaseRunError> {
        let run = Self { run: RunBuilder::in_place(destination)?, side: destination.side, started_at, redactor };
        run.run.begin(run.facts())?;
        Ok(run)
    }

    pub fn folder(&self) -> &Utf8Path {
        self.run.writer().folder()
    }

    pub fn add(&self, execution: &Execution) -> Result<(), CaseRunError> {
        let case_id = execution.contract.id.case_id()?;
        if let Some(folder) = &execution.evidence {
            let agent = execution.agent.iter().map(|agent| &agent.evidence);
            let attempts = execution.verification.iter().flat_map(|report| &report.attempts);
            for files in agent.chain(attempts.map(|attempt| &attempt.evidence)) {
                let path = folder.join(&files.log);
                let bytes = read_file::read(&path, read_file::MAX_LARGE_BYTES)
                    .map_err(|source| CaseRunError::Read { path: path.clone(), source })?;
                let name = format!("{case_id}.{}.txt", files.log);
                self.run.writer().write_asset(&name, AssetKind::Other, Some(&case_id), &bytes)?;
            }
        }
        Ok(self.run.add_listed(&self.executed(execution, case_id), self.facts())?)
    }

    pub fn add_not_executed(&self, contract: &Contract, code: &str, reason: &str) -> Result<(), CaseRunError> {
        // A refusal is not an answer of the agent, so the case is one that could not be run.
        let failure = RunnerFailure {
            class: FailureClass::Other,
            url: WORKFLOW.to_owned(),
            attempt: Count::from(1_u64),
            timeout_ms: None,
            latency_ms: None,
            status: None,
            status_text: None,
            error_name: Some(code.to_owned()),
            error_message: Some(self.redactor.text(reason, &mut Applied::default())),
            body_snippet: None,
            full_body_saved_to: None,
            full_body_meta_saved_to: Nullable::Absent,
            extra: Extra::new(),
        };
        let outcome = Outcome::RunnerError(failure);
        let case = self.case(contract, contract.id.case_id()?, self.started_at, 0, outcome);
        Ok(self.run.add_listed(&case, self.facts())?)
    }

    /// Completes the folder. Returns its path.
    pub fn finish(self) -> Result<Utf8PathBuf, CaseRunError> {
        let facts = self.facts();
        Ok(self.run.finish(facts)?)
    }

    fn facts(&self) -> RunFacts {
        RunFacts {
            producer: WORKFLOW,
            // Relative to the run folder, so that the folder of all runs can be moved.
            cases_path: format!("../../{CASES_FILE}"),
            started_at: self.started_at,
            stats: Extra::new(),
            extra: Extra::new(),
        }
    }

    fn executed(&self, execution: &Execution, case_id: CaseId) -> Case {
        let mut at = millis(execution.started_at);
        let mut events = Vec::new();
        for step in steps(execution) {
            let call = tool_call(step.call_id.clone(), step.tool.to_owned(), self.object(step.args));
            events.push((at, EventBody::ToolCall(call)));
            // Only durations are recorded, so the steps follow each other without pauses.
            at = at.saturating_add(step.duration_ms);
            let payload = Content::Json(self.object(step.payload));
            let result = tool_result(step.call_id, step.status, Millis::from(step.duration_ms), Some(payload));
            events.push((at, EventBody::ToolResult(result)));
        }
        // The final output is what `compare` judges; the steps show how it came about.
        let outcome = answer(events, at, self.object(final_output(execution)));
        let latency = millis(execution.ended_at).saturating_sub(millis(execution.started_at));
        self.case(&execution.contract, case_id, execution.started_at, latency, outcome)
    }

    fn case(
        &self,
        contract: &Contract,
        case_id: CaseId,
        started_at: Timestamp,
        latency: u64,
        outcome: Outcome,
    ) -> Case {
        Case {
            case_id,
            version: self.side,
            workflow_id: Some(WORKFLOW.to_owned()),
            attempts: Some(vec![attempt(started_at, Some(latency), &outcome)]),
            usage: None,
            outcome,
            extra: self.object(json!({ "title": contract.summary() })),
        }
    }

    fn object(&self, value: Value) -> Map<String, Value> {
        let mut fields = object(value);
        self.redactor.object(&mut fields, &mut Applied::default());
        fields
    }
}

struct Step {
    call_id: String,
    tool: &'static str,
    args: Value,
    status: ToolStatus,
    duration_ms: u64,
    payload: Value,
}

fn steps(execution: &Execution) -> Vec<Step> {
    let mut steps = Vec::new();
    if let Some(agent) = &execution.agent {
        steps.push(Step {
            call_id: "agent".to_owned(),
            tool: "agent",
            // Not the command: it is a setting of the run, and usually differs between the compared versions.
            args: json!({ "contract": execution.contract.id }),
            status: status(agent.exit_code == 0),
            duration_ms: agent.duration_ms,
            payload: json!({ "exit_code": agent.exit_code }),
        });
    }
    let attempts = execution.verification.as_ref().map(|report| report.attempts.as_slice()).unwrap_or_default();
    for attempt in attempts {
        let mut payload = json!({ "exit_code": attempt.exit_code });
        if let Some(reason) = attempt.stopped {
            payload["stopped"] = json!(reason);
        }
        // The output of a command that passed often has times in it, which would be differences between two nights.
        if let (false, Some([stdout, stderr])) = (attempt.passed, &execution.streams)
            && attempt.number == attempts.len() as u64
        {
            payload["stdout"] = json!(tail(stdout));
            payload["stderr"] = json!(tail(stderr));
        }
        steps.push(Step {
            call_id: format!("verification-{}", attempt.number),
            tool: "verification",
            args: json!({ "command": execution.contract.verification.command }),
            status: status(attempt.passed),
            duration_ms: attempt.duration_ms,
            payload,
        });
    }
    if let Some(rollback) = &execution.rollback {
        steps.push(Step {
            call_id: "rollback".to_owned(),
            tool: "rollback",
            args: json!({ "strategy": rollback.strategy }),
            status: status(rollback.outcome == RollbackOutcome::RolledBack),
            // The duration of a rollback is not recorded.
            duration_ms: 0,
            payload: json!({ "outcome": rollback.outcome.as_str() }),
        });
    }
    steps
}

/// Returns the final output: whether the contract is met, why not, and what the agent produced.
fn final_output(execution: &Execution) -> Value {
    let report = execution.verification.as_ref();
    let assertions = report.map(|report| report.assertions.as_slice()).unwrap_or_default();
    let assertions = assertions.iter().map(|it| match &it.outcome {
        AssertionOutcome::Met => json!({"expression": it.assertion, "outcome": "met"}),
        AssertionOutcome::NotMet => json!({"expression": it.assertion, "outcome": "not_met"}),
        AssertionOutcome::Error { message, .. } => {
            json!({"expression": it.assertion, "outcome": "error", "message": message})
        }
    });
    let artifacts = report.map(|report| report.artifacts.as_slice()).unwrap_or_default();
    let artifacts = artifacts.iter().map(|it| match &it.found {
        FoundArtifact::Found { sha256, .. } => json!({"path": it.path, "sha256": sha256}),
        FoundArtifact::Problem { message, .. } => json!({"path": it.path, "problem": message}),
    });
    json!({
        "met": execution.verdict.is_met(),
        // The word is part of the format; the type has another name in the program.
        "verdict": execution.verdict.as_str(),
        "state": execution.state,
        "contract": execution.contract.id,
        "version": execution.contract.version,
        "reasons": execution.reasons,
        "output": execution.output,
        "assertions": assertions.collect::<Vec<_>>(),
        "artifacts": artifacts.collect::<Vec<_>>(),
    })
}

const fn status(ok: bool) -> ToolStatus {
    if ok { ToolStatus::Ok } else { ToolStatus::Error }
}

fn tail(text: &str) -> String {
    let skipped = text.chars().count().saturating_sub(TAIL_CHARS);
    text.chars().skip(skipped).collect()
}
