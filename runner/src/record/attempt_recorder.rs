//! Records a finished attempt: the answer as an artifact, or the failure with its evidence as assets.
//!
//! Retries and the completion of a case are decided elsewhere (`policy/retry.rs`, `run/case_runner.rs`).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use counterproof_artifact::{
    Attempt, AttemptOutcome, Case, CaseId, Extra, Millis, Nullable, Outcome, RunnerFailure, Side,
};
use counterproof_json_text::{DuplicateKey, DuplicateKeys, duplicate_keys};
use counterproof_redaction::{Applied, Redactor};
use counterproof_store::RunWriter;
use counterproof_store::write::WriteError;
use serde_json::Value;

use super::failure_document::RecordedFailure;
use crate::agent::{AnswerContext, FILLED_IN, Protocol, ProtocolAdapter};
use crate::attempt::FinishedAttempt;
use crate::body_sink::BodyBytes;
use crate::environment::{Moment, whole_millis};
use crate::event::FailureNote;
use crate::failure::{Fault, Reason, Violation};
use crate::settings::ByteLimits;

/// Records attempts in the folder of one run.
pub(crate) struct AttemptRecorder {
    pub(crate) run: RunWriter,
    pub(crate) url: String,
    pub(crate) timeout_ms: u64,
    pub(crate) limits: ByteLimits,
    pub(crate) redactor: Redactor,
    pub(crate) adapter: Arc<dyn ProtocolAdapter>,
    pub(crate) protocol: Protocol,
    pub(crate) header_names: Vec<String>,
    /// The numbers of cases for each part that was filled in.
    pub(crate) filled_in: Mutex<BTreeMap<String, usize>>,
}

pub(crate) struct RecordedAttempt {
    /// The attempt's entry in the artifact.
    pub(crate) entry: Attempt,
    pub(crate) result: Result<Box<ReceivedAnswer>, Box<RecordedFailure>>,
    /// Whether the agent was reached: at least a connection was established.
    pub(crate) reached: bool,
}

/// An answer before its large payloads are moved to assets.
pub(crate) struct ReceivedAnswer {
    pub(crate) case: Case,
    /// The redaction rules that masked something in it.
    pub(crate) applied: Applied,
    /// When the answer was complete.
    pub(crate) received: Moment,
    /// The body as the agent sent it, not redacted.
    pub(crate) body: Vec<u8>,
}

impl AttemptRecorder {
    /// Judges the answer of an attempt, and saves its evidence.
    pub(crate) fn record(&self, attempt: FinishedAttempt, case_id: &CaseId) -> Result<RecordedAttempt, WriteError> {
        let mut attempt = attempt;
        let reached = match &attempt.exchange.fault {
            // A response proves a connection, whatever the fault.
            Some(fault) => attempt.exchange.response.is_some() || !BEFORE_CONNECTED.contains(&fault.reason),
            None => true,
        };
        // Taken out, because the bytes are moved to disk while the rest of the attempt is still borrowed.
        let body = attempt.exchange.response.as_mut().map(|response| std::mem::take(&mut response.body.bytes));
        let body = body.unwrap_or_default();
        let mut entry = entry(&attempt);
        let result = match self.judge(&attempt, &body, case_id) {
            Ok((case, applied)) => {
                let body = match body {
                    BodyBytes::Memory(bytes) => self.adapter.document(&bytes).into_owned(),
                    BodyBytes::Disk { .. } => Vec::new(),
                };
                self.count_filled_in(&case);
                Ok(Box::new(ReceivedAnswer { case, applied, received: attempt.ended, body }))
            }
            Err(fault) => {
                entry.outcome = AttemptOutcome::RunnerError;
                entry.error_class = Some(fault.reason.class());
                entry.extra.insert("error_name".to_owned(), fault.reason.name().into());
                let failure = self.record_failure(&attempt, body, &fault, case_id)?;
                if let Some(href) = &failure.document.full_body_saved_to {
                    entry.extra.insert("full_body_saved_to".to_owned(), href.as_str().into());
                }
                Err(Box::new(failure))
            }
        };
        Ok(RecordedAttempt { entry, result, reached })
    }

    /// Returns the answer, or the fault of the exchange or of the answer.
    fn judge(&self, attempt: &FinishedAttempt, body: &BodyBytes, case_id: &CaseId) -> Result<(Case, Applied), Fault> {
        let exchange = &attempt.exchange;
        match (&exchange.fault, &exchange.response, body) {
            (Some(fault), _, _) => Err(fault.clone()),
            (None, Some(_), BodyBytes::Memory(bytes)) => {
                let content_type = exchange.response.as_ref().and_then(|response| response.header("content-type"));
                let context =
                    AnswerContext { case_id, side: self.run.side(), received: attempt.ended.at, content_type };
                let answer = self.read_answer(bytes, context);
                if exchange.program.is_some() { answer.map_err(Fault::in_program_output) } else { answer }
            }
            (None, _, _) => Err(Fault::new(Reason::RequestFailed, "there was no response")),
        }
    }

    /// Parses a body as an answer, with secrets masked.
    fn read_answer(&self, bytes: &[u8], context: AnswerContext<'_>) -> Result<(Case, Applied), Fault> {
        let document = self.adapter.document(bytes);
        let bytes = &*document;
        let mut applied = Applied::default();
        if !self.adapter.reads_json(context.content_type) {
            return self.masked(self.adapter.answer(bytes, context)?);
        }
        // Masked inside the JSON value, so that the result is valid JSON no matter which characters a secret contains.
        let masked = serde_json::from_slice(bytes).ok().and_then(|mut value: Value| {
            self.redactor.json(&mut value, &mut applied);
            (!applied.is_empty()).then(|| value.to_string())
        });
        // Most answers contain no secret. They are parsed as they arrived and not serialised again.
        let masked = masked.as_ref().map_or(bytes, |text| text.as_bytes());
        let case = self.adapter.answer(masked, context)?;
        // Checked on the original bytes, because a JSON parser silently drops one of two equal keys. Checked last, because
        // other faults explain more.
        reject_duplicate_keys(bytes)?;
        if matches!(self.protocol, Protocol::Http | Protocol::Agui) {
            let (case, joined) = self.masked(case)?;
            applied.merge(&joined);
            return Ok((case, applied));
        }
        Ok((case, applied))
    }

    /// Masks secrets in an artifact whose texts may be joined from several parts of the answer: a secret can be in two of them.
    fn masked(&self, case: Case) -> Result<(Case, Applied), Fault> {
        let failed = |error: serde_json::Error| Fault::new(Reason::ContractViolated, format!("the answer: {error}"));
        let mut applied = Applied::default();
        let mut value = serde_json::to_value(&case).map_err(failed)?;
        self.redactor.json(&mut value, &mut applied);
        if applied.is_empty() {
            return Ok((case, applied));
        }
        Ok((serde_json::from_value(value).map_err(failed)?, applied))
    }

    /// Returns the parts that were filled in, with the numbers of cases.
    pub(crate) fn filled_in(&self) -> BTreeMap<String, usize> {
        self.filled_in.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn count_filled_in(&self, case: &Case) {
        let parts = case.extra.get(FILLED_IN).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let mut counts = self.filled_in.lock().unwrap_or_else(PoisonError::into_inner);
        parts.for_each(|part| *counts.entry(part.to_owned()).or_default() += 1);
    }

    /// Moves large payloads of an answer to assets, and notes the redaction rules.
    pub(crate) fn finish_answer(&self, mut case: Case, applied: &Applied) -> Result<Case, WriteError> {
        self.run.move_large_payloads(&mut case, self.limits.payload)?;
        if let Outcome::Ok(answer) = &mut case.outcome {
            let output = &mut answer.final_output;
            if !applied.is_empty() {
                let names = output.redactions_applied.get_or_insert_default();
                names.extend(applied.names().into_iter().map(str::to_owned));
            }
            // Computed from the redacted content: the hash of the original would let a reader test guesses of the secret.
            output.output_hash.get_or_insert_with(|| output.content.short_hash());
        }
        Ok(case)
    }
}

/// Returns the entry of a successful attempt.
fn entry(attempt: &FinishedAttempt) -> Attempt {
    let mut extra = Extra::new();
    if let Some(status) = attempt.exchange.response.as_ref().and_then(|response| response.status) {
        extra.insert("status".to_owned(), status.as_u16().into());
    }
    Attempt {
        attempt: u64::from(attempt.number).into(),
        started_at: attempt.started.iso(),
        latency_ms: Some(latency_ms(attempt)),
        outcome: AttemptOutcome::Ok,
        error_class: None,
        extra,
    }
}

pub(super) fn latency_ms(attempt: &FinishedAttempt) -> Millis {
    whole_millis(attempt.latency()).into()
}

/// The failures without an established connection.
const BEFORE_CONNECTED: [Reason; 9] = [
    Reason::ConnectTimeout,
    Reason::Dns,
    Reason::ConnectionRefused,
    Reason::Unreachable,
    Reason::ProxyFailed,
    Reason::Tls,
    Reason::ConnectionFailed,
    Reason::RequestFailed,
    Reason::AgentNotStarted,
];

/// Reports whether a recorded attempt reached the agent.
pub(crate) fn reached_agent(entry: &Attempt) -> bool {
    let name = entry.extra.get("error_name").and_then(Value::as_str);
    entry.extra.contains_key("status")
        || name.is_none_or(|name| BEFORE_CONNECTED.iter().all(|reason| reason.name() != name))
}

/// Builds the complete artifact of a case from the result of its last attempt and the entries of all attempts.
pub(crate) fn artifact(
    result: Result<Case, RunnerFailure>,
    case_id: &CaseId,
    side: Side,
    attempts: Vec<Attempt>,
) -> Case {
    match result {
        Ok(case) => Case { attempts: Some(attempts), ..case },
        Err(failure) => Case {
            case_id: case_id.clone(),
            version: side,
            workflow_id: None,
            attempts: Some(attempts),
            usage: None,
            outcome: Outcome::RunnerError(failure),
            extra: Extra::new(),
        },
    }
}

pub(super) fn reject_duplicate_keys(bytes: &[u8]) -> Result<(), Fault> {
    // Their meaning is undefined (RFC 8259, section 4), so either value could be the one that the agent meant.
    let DuplicateKeys { listed, omitted } = duplicate_keys(&String::from_utf8_lossy(bytes));
    if listed.is_empty() {
        return Ok(());
    }
    let reason = Reason::DuplicateKey;
    let message = format!("the body contains {} duplicate keys", listed.len() + omitted);
    let violation = |duplicate: DuplicateKey| Violation {
        code: reason.name(),
        pointer: duplicate.pointer,
        message: "duplicate key".to_owned(),
        expected: "unique keys".to_owned(),
    };
    Err(Fault { violations: listed.into_iter().map(violation).collect(), ..Fault::new(reason, message) })
}

/// The failure of a skipped case, as events report it.
pub(crate) const SKIPPED: FailureNote =
    FailureNote { class: Reason::NotRun.class(), name: Reason::NotRun.name(), status: None };

impl AttemptRecorder {
    /// Returns the error of a request that cannot be serialised.
    pub(crate) fn request_error(&self, case_id: &CaseId, error: serde_json::Error) -> WriteError {
        WriteError { path: self.run.folder().join(format!("{case_id}.json")), source: error.into() }
    }

    /// Returns the failure of a conversation that cannot go on after the answer of attempt number `attempt`.
    pub(crate) fn conversation_failure(&self, attempt: usize, fault: &Fault) -> RunnerFailure {
        let mut applied = Applied::default();
        let message = self.redactor.text(&fault.message, &mut applied);
        RunnerFailure {
            class: fault.reason.class(),
            url: self.url.clone(),
            attempt: attempt.into(),
            timeout_ms: Some(self.timeout_ms.into()),
            latency_ms: None,
            status: None,
            status_text: None,
            error_name: Some(fault.reason.name().to_owned()),
            error_message: Some(message),
            body_snippet: None,
            full_body_saved_to: None,
            full_body_meta_saved_to: Nullable::Null,
            extra: Extra::new(),
        }
    }
}

pub(crate) fn skipped_case(recorder: &AttemptRecorder, case_id: CaseId, message: String) -> Case {
    // The contract counts attempts from 1, so `attempt` is 1 although `attempts` is empty.
    let failure = RunnerFailure {
        class: SKIPPED.class,
        url: recorder.url.clone(),
        attempt: 1_u64.into(),
        timeout_ms: Some(recorder.timeout_ms.into()),
        latency_ms: None,
        status: None,
        status_text: None,
        error_name: Some(SKIPPED.name.to_owned()),
        error_message: Some(message),
        body_snippet: None,
        full_body_saved_to: None,
        full_body_meta_saved_to: Nullable::Null,
        extra: Extra::new(),
    };
    Case {
        case_id,
        version: recorder.run.side(),
        workflow_id: None,
        attempts: Some(Vec::new()),
        usage: None,
        outcome: Outcome::RunnerError(failure),
        extra: Extra::new(),
    }
}
