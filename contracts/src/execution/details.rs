//! The evidence that transitions carry.

use serde_json::{Map, Value, json};

use super::outcome::RollbackSummary;
use crate::git::Changes;
use crate::lifecycle::Details;
use crate::verification::{
    ArtifactCheck, AssertionOutcome, AssertionResult, FoundArtifact, OutputCheck, VerificationReport,
};

/// Longest list of reasons.
const MAX_REASONS: usize = 50;

/// Returns the evidence of a verification. `evidence` has the names of the files, relative to the files of the store.
pub(super) fn verification(report: &VerificationReport, changes: Option<Changes>, evidence: &[String]) -> Details {
    let last = report.attempts.last();
    let artifact = |it: &ArtifactCheck| match &it.found {
        FoundArtifact::Found { sha256, bytes } => json!({"path": it.path, "sha256": sha256, "bytes": bytes}),
        FoundArtifact::Problem { message, .. } => json!({"path": it.path, "problem": message}),
    };
    let mut document = json!({
        "passed": report.passed,
        "exit_code": last.map(|attempt| attempt.exit_code),
        "timed_out": last.is_some_and(|attempt| attempt.stopped == Some(crate::process::StopReason::TimedOut)),
        "duration_ms": report.attempts.iter().map(|attempt| attempt.duration_ms).sum::<u64>(),
        "attempts": report.attempts.len(),
        "reasons": reasons(report),
        "assertions": report.assertions.iter().map(assertion).collect::<Vec<Value>>(),
        "artifacts": report.artifacts.iter().map(artifact).collect::<Vec<Value>>(),
        "evidence": evidence,
    });
    if let Some(changes) = changes {
        document["changes"] = json!(changes);
    }
    Map::from_iter([("verification".to_owned(), document)])
}

/// Returns the evidence of a failure before the verification.
pub(super) fn failure(reasons: &[String], evidence: &[String]) -> Details {
    let document = json!({"passed": false, "exit_code": null, "reasons": reasons, "evidence": evidence});
    Map::from_iter([("verification".to_owned(), document)])
}

/// Returns the evidence of a rollback.
pub(super) fn rollback(summary: &RollbackSummary) -> Details {
    let mut document = json!({
        "strategy": summary.strategy, "outcome": summary.outcome.as_str(), "message": summary.message,
    });
    if let Some(way_back) = &summary.way_back {
        document["way_back"] = json!(way_back);
    }
    Map::from_iter([("rollback".to_owned(), document)])
}

fn assertion(result: &AssertionResult) -> Value {
    match &result.outcome {
        AssertionOutcome::Met => json!({"expression": result.assertion, "outcome": "met"}),
        AssertionOutcome::NotMet => json!({"expression": result.assertion, "outcome": "not_met"}),
        AssertionOutcome::Error { message, span } => {
            json!({"expression": result.assertion, "outcome": "error", "message": message, "start": span.start, "end": span.end})
        }
    }
}

/// Returns why a verification did not pass, one sentence each. Empty if it passed.
pub(super) fn reasons(report: &VerificationReport) -> Vec<String> {
    let mut reasons = Vec::new();
    match &report.output {
        OutputCheck::Valid => {}
        OutputCheck::Invalid { violations, more } => {
            reasons.extend(violations.iter().map(|it| match it.pointer.as_str() {
                "" => format!("output: {}", it.message),
                pointer => format!("output at {pointer}: {}", it.message),
            }));
            let more = more.filter(|more| *more > 0);
            reasons.extend(more.map(|more| format!("output: {more} more violations of its schema")));
        }
        OutputCheck::Undecided { reason } => reasons.push(format!("output: its schema cannot be checked: {reason}")),
    }
    if let Some(attempt) = report.attempts.last()
        && !attempt.passed
    {
        let attempts = report.attempts.len();
        let after = if attempts > 1 { format!(" in the last of {attempts} attempts") } else { String::new() };
        match (attempt.stopped, attempt.exit_code) {
            (Some(reason), _) => reasons.push(format!("verification: {reason}{after}")),
            (None, 0) => {}
            (None, code) => match attempt.signal {
                Some(signal) => reasons.push(format!("verification: the command was killed by signal {signal}{after}")),
                None if report.exit_code_rule == crate::verification::ExitCodeRule::Zero => {
                    reasons.push(format!("verification: the command ended with exit code {code}{after}"));
                }
                None => {}
            },
        }
    }
    if !report.attempts.is_empty() && report.attempts.iter().all(|attempt| attempt.stopped.is_none()) {
        reasons.extend(report.assertions.iter().filter_map(|it| match &it.outcome {
            AssertionOutcome::Met => None,
            AssertionOutcome::NotMet => Some(format!("assertion not met: {}", it.assertion)),
            AssertionOutcome::Error { message, .. } => Some(format!("assertion failed: {}: {message}", it.assertion)),
        }));
    }
    reasons.extend(report.artifacts.iter().filter_map(|it| match &it.found {
        FoundArtifact::Found { .. } => None,
        FoundArtifact::Problem { message, .. } => Some(format!("artifact: {message}")),
    }));
    reasons.truncate(MAX_REASONS);
    reasons
}
