//! The document of a failed attempt: the `runner_failure` of an artifact, with its evidence saved as assets.

use counterproof_artifact::{AssetKind, CaseId, Extra, FailureClass, Nullable, RunnerFailure};
use counterproof_redaction::Applied;
use counterproof_safe_run::Ending;
use counterproof_store::write::WriteError;
use serde_json::Value;

use super::attempt_recorder::{AttemptRecorder, latency_ms};
use super::saved_body::{AttemptRef, REDACTIONS_APPLIED};
use crate::attempt::FinishedAttempt;
use crate::body_sink::{BodyBytes, Extent};
use crate::event::FailureNote;
use crate::exchange::ProgramEnd;
use crate::failure::Fault;
use crate::policy::{FailedAttempt, retry_after};

/// An artifact lists at most this many violations, and counts the rest.
const MAX_VIOLATIONS: usize = 20;

pub(crate) struct RecordedFailure {
    pub(crate) document: RunnerFailure,
    /// The input of the retry policy.
    pub(crate) failed: FailedAttempt,
    /// The summary for events.
    pub(crate) note: FailureNote,
}

impl AttemptRecorder {
    pub(super) fn record_failure(
        &self,
        attempt: &FinishedAttempt,
        body: BodyBytes,
        fault: &Fault,
        case_id: &CaseId,
    ) -> Result<RecordedFailure, WriteError> {
        let response = attempt.exchange.response.as_ref();
        let status = response.and_then(|response| response.status);
        let class = fault.reason.class();
        let mut applied = Applied::default();
        let attempt_ref = AttemptRef { case_id, number: attempt.number, reason: fault.reason };
        let saved = match response {
            Some(response) => self.save_body(body, response, attempt_ref, &mut applied)?,
            None => None,
        };
        let mut extra = self.violations(fault, &mut applied);
        if let Some(program) = &attempt.exchange.program {
            extra.extend(save(program, self, attempt_ref, &mut applied)?);
        }
        // After all other parts: `applied` then names the rules that masked any of them.
        let message = self.redactor.text(&fault.message, &mut applied);
        if !applied.is_empty() {
            extra.insert(REDACTIONS_APPLIED.to_owned(), applied.names().into());
        }
        let (body_snippet, full_body_saved_to, full_body_meta_saved_to) = match saved {
            Some(saved) => (Some(saved.snippet), Some(saved.body), Nullable::Value(saved.meta)),
            None => (None, None, Nullable::Null),
        };
        let document = RunnerFailure {
            class,
            url: self.url.clone(),
            attempt: u64::from(attempt.number).into(),
            timeout_ms: Some(self.timeout_ms.into()),
            latency_ms: Some(latency_ms(attempt)),
            status: status.map(|status| u64::from(status.as_u16()).into()),
            status_text: status.and_then(|status| status.canonical_reason()).map(str::to_owned),
            error_name: Some(fault.reason.name().to_owned()),
            error_message: Some(message),
            body_snippet,
            full_body_saved_to,
            full_body_meta_saved_to,
            extra,
        };
        let status = status.map(|status| status.as_u16());
        let requested_wait = response.and_then(|response| response.header("retry-after"));
        // The header can be a date, which is compared with the time at which it arrived.
        let retry_after = requested_wait.and_then(|header| retry_after(header, attempt.ended.at));
        // A worker is like an open connection: another one can answer the request.
        let died = attempt.exchange.program.as_ref().is_some_and(|program| program.died);
        let retried_as = if died { FailureClass::NetworkError } else { class };
        let failed =
            FailedAttempt { attempt: attempt.number, class: retried_as, reason: fault.reason, status, retry_after };
        let note = FailureNote { class, name: fault.reason.name(), status };
        Ok(RecordedFailure { document, failed, note })
    }

    /// Returns the violations as fields of the failure.
    fn violations(&self, fault: &Fault, applied: &mut Applied) -> Extra {
        // They quote the agent, so secrets are masked in them.
        let mut fields = Extra::new();
        if fault.violations.is_empty() {
            return fields;
        }
        let listed = fault.violations.iter().take(MAX_VIOLATIONS);
        let listed = listed.filter_map(|violation| serde_json::to_value(violation).ok()).collect();
        let mut listed = Value::Array(listed);
        self.redactor.json(&mut listed, applied);
        fields.insert("violations".to_owned(), listed);
        let omitted = fault.violations.len().saturating_sub(MAX_VIOLATIONS);
        if omitted > 0 {
            fields.insert("violations_omitted".to_owned(), omitted.into());
        }
        fields
    }
}

/// Returns the additional fields of the failure. Saves standard error as an asset unless it is empty.
pub(super) fn save(
    program: &ProgramEnd,
    recorder: &AttemptRecorder,
    AttemptRef { case_id, number, .. }: AttemptRef<'_>,
    applied: &mut Applied,
) -> Result<Extra, WriteError> {
    let mut fields = Extra::new();
    match program.ending {
        Some(Ending::Exited(code)) => drop(fields.insert("exit_code".to_owned(), code.into())),
        Some(Ending::Killed(signal)) => drop(fields.insert("signal".to_owned(), signal.into())),
        None => {}
    }
    if !program.stderr.is_empty() {
        let bytes = match program.stderr_extent {
            Extent::Complete => recorder.redactor.bytes(&program.stderr, applied),
            // The cut can split a secret, so a prefix of one at the end is masked too.
            Extent::Truncated => recorder.redactor.truncated_bytes(&program.stderr, applied),
        };
        let extension = if std::str::from_utf8(&bytes).is_ok() { "txt" } else { "bin" };
        let name = format!("{case_id}.attempt{number}.stderr.{extension}");
        let saved = recorder.run.write_asset(&name, AssetKind::Other, Some(case_id), &bytes)?;
        fields.insert("stderr_saved_to".to_owned(), saved.href.as_str().into());
    }
    Ok(fields)
}
