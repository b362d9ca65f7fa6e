//! The case of one execution.

use counterproof_artifact::{
    Answer, Attempt, AttemptOutcome, Case, CaseId, Content, ContentType, Count, Event, EventBody, Extra, FailureClass,
    FinalOutput, FinalOutputEvent, Millis, Outcome, RunnerFailure, Side, ToolCall, ToolResult, ToolStatus,
};
use counterproof_redaction::{Applied, Redactor};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::execution::{Execution, RollbackOutcome};
use crate::verification::{AssertionOutcome, FoundArtifact};

/// The name of the workflow in every case.
pub(super) const WORKFLOW: &str = "contract";

/// The longest text of a stream in a case, in characters. The whole stream is in the record.
const TAIL_CHARS: usize = 4_000;

/// What is common to the cases of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct CaseContext<'a> {
    pub(super) case_id: &'a CaseId,
    pub(super) side: Side,
    /// Masks secrets in what the contract says, such as its command.
    pub(super) redactor: &'a Redactor,
}

impl CaseContext<'_> {
    /// Returns the fields of an object, without secrets.
    fn object(&self, value: Value) -> Map<String, Value> {
        let mut fields = object(value);
        self.redactor.object(&mut fields, &mut Applied::default());
        fields
    }
}

/// A step of an execution, as a tool call and its result.
struct Step {
    call_id: String,
    tool: &'static str,
    args: Value,
    status: ToolStatus,
    duration_ms: u64,
    payload: Value,
}

/// Builds the case of an execution.
pub(super) fn executed(execution: &Execution, context: CaseContext<'_>) -> Case {
    let mut at = millis(execution.started_at);
    let mut events = Vec::new();
    for step in steps(execution) {
        let call = ToolCall {
            call_id: step.call_id.clone(),
            action_id: None,
            tool: step.tool.to_owned(),
            args: context.object(step.args),
            risk_level: None,
            risk_tags: None,
            annotations: None,
            extra: Extra::new(),
        };
        events.push(Event { ts: at.into(), body: EventBody::ToolCall(call) });
        at = at.saturating_add(step.duration_ms);
        let result = ToolResult {
            call_id: step.call_id,
            action_id: None,
            status: step.status,
            latency_ms: Millis::from(step.duration_ms),
            payload_summary: Some(Content::Json(context.object(step.payload))),
            payload_asset_href: None,
            payload_asset_sha256: None,
            extra: Extra::new(),
        };
        events.push(Event { ts: at.into(), body: EventBody::ToolResult(result) });
    }
    let output = Content::Json(context.object(final_output(execution)));
    events.push(Event {
        ts: at.into(),
        body: EventBody::FinalOutput(FinalOutputEvent {
            content_type: ContentType::Json,
            content: output.clone(),
            extra: Extra::new(),
        }),
    });
    let final_output = FinalOutput {
        content_type: ContentType::Json,
        output_hash: Some(output.short_hash()),
        content: output,
        redactions_applied: None,
        extra: Extra::new(),
    };
    let outcome = Outcome::Ok(Answer { proposed_actions: Vec::new(), events, final_output });
    let latency = millis(execution.ended_at).saturating_sub(millis(execution.started_at));
    case(context, execution.started_at, latency, outcome, &title(execution))
}

/// Builds the case of a contract that could not be executed.
pub(super) fn not_executed(reason: &str, code: &str, at: Timestamp, title: &str, context: CaseContext<'_>) -> Case {
    let failure = RunnerFailure {
        class: FailureClass::Other,
        url: WORKFLOW.to_owned(),
        attempt: Count::from(1_u64),
        timeout_ms: None,
        latency_ms: None,
        status: None,
        status_text: None,
        error_name: Some(code.to_owned()),
        error_message: Some(context.redactor.text(reason, &mut Applied::default())),
        body_snippet: None,
        full_body_saved_to: None,
        full_body_meta_saved_to: counterproof_artifact::Nullable::Absent,
        extra: Extra::new(),
    };
    case(context, at, 0, Outcome::RunnerError(failure), title)
}

fn case(context: CaseContext<'_>, started_at: Timestamp, latency: u64, outcome: Outcome, title: &str) -> Case {
    let attempt = Attempt {
        attempt: 1_u64.into(),
        started_at: started_at.to_string(),
        latency_ms: Some(latency.into()),
        outcome: match outcome {
            Outcome::Ok(_) => AttemptOutcome::Ok,
            Outcome::RunnerError(_) => AttemptOutcome::RunnerError,
        },
        error_class: match &outcome {
            Outcome::Ok(_) => None,
            Outcome::RunnerError(failure) => Some(failure.class),
        },
        extra: Extra::new(),
    };
    Case {
        case_id: context.case_id.clone(),
        version: context.side,
        workflow_id: Some(WORKFLOW.to_owned()),
        attempts: Some(vec![attempt]),
        usage: None,
        outcome,
        extra: context.object(json!({ "title": title })),
    }
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

fn title(execution: &Execution) -> String {
    execution.contract.summary().to_owned()
}

const fn status(ok: bool) -> ToolStatus {
    if ok { ToolStatus::Ok } else { ToolStatus::Error }
}

fn tail(text: &str) -> String {
    let skipped = text.chars().count().saturating_sub(TAIL_CHARS);
    text.chars().skip(skipped).collect()
}

fn millis(at: Timestamp) -> u64 {
    u64::try_from(at.as_millisecond()).unwrap_or_default()
}

/// Returns the fields of a JSON object.
fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        other => Map::from_iter([("value".to_owned(), other)]),
    }
}
