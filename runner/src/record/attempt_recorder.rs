//! What a try leaves behind: the artifact of an answer, or a failure with its whole body. It writes assets, and decides
//! neither on another attempt nor when a case is complete.

use std::sync::Arc;

use counterproof_artifact::{
    Attempt, AttemptOutcome, Case, CaseId, Extra, Millis, Nullable, Outcome, RunnerFailure, Side,
};
use counterproof_redaction::{Applied, Redactor};
use counterproof_store::RunWriter;
use counterproof_store::write::WriteError;
use counterproof_validation::locate::{self, DuplicateKey, DuplicateKeys};
use serde_json::Value;

use crate::agent::{Answering, Dialect, Protocol};
use crate::attempt::execute::Try;
use crate::event::FailureNote;
use crate::failure::fault::{Fault, Reason, Violation};
use crate::http::body::header;
use crate::policy::retry::{self, Failed};
use crate::record::failed_body::{REDACTIONS_APPLIED, Whose};
use crate::record::process_failure;
use crate::response::body_sink::Held;
use crate::settings::run_settings::ByteLimits;

/// How many violations an artifact lists; the rest is counted.
const MAX_VIOLATIONS: usize = 20;

/// What a keeper needs to know of the run.
pub(crate) struct Keeper {
    pub(crate) run: RunWriter,
    pub(crate) url: String,
    pub(crate) timeout_ms: u64,
    pub(crate) limits: ByteLimits,
    pub(crate) redactor: Redactor,
    pub(crate) dialect: Arc<dyn Dialect>,
    pub(crate) protocol: Protocol,
    pub(crate) header_names: Vec<String>,
}

/// A try, judged and kept.
pub(crate) struct Kept {
    pub(crate) record: Attempt,
    pub(crate) result: Result<Box<Case>, Box<Failure>>,
    /// True where the agent was reached: there was a response, or at least a connection.
    pub(crate) reached: bool,
}

/// A failed try.
pub(crate) struct Failure {
    pub(crate) document: RunnerFailure,
    pub(crate) failed: Failed,
    pub(crate) note: FailureNote,
}

impl Keeper {
    /// Judges a try, and keeps what there is to keep of it.
    pub(crate) fn keep(&self, tried: Try, case_id: &CaseId) -> Result<Kept, WriteError> {
        let mut tried = tried;
        let reached = match &tried.fault {
            Some(fault) => tried.reply.is_some() || is_past_connecting(fault.reason),
            None => true,
        };
        let held = tried.reply.as_mut().map(|reply| std::mem::take(&mut reply.body.held)).unwrap_or_default();
        let answering = Answering { case_id, side: self.run.side(), received: tried.ended.at };
        let judged = match (&tried.fault, &tried.reply, &held) {
            (Some(fault), _, _) => Err(fault.clone()),
            (None, Some(_), Held::Memory(bytes)) => {
                let read = self.read_answer(bytes, answering);
                if tried.program.is_some() { read.map_err(Fault::in_output) } else { read }
            }
            (None, _, _) => Err(Fault::new(Reason::RequestFailed, "there was no response")),
        };
        let mut record = record(&tried);
        let result = match judged {
            Ok((case, applied)) => Ok(Box::new(self.finish_answer(case, &applied)?)),
            Err(fault) => {
                record.outcome = AttemptOutcome::RunnerError;
                record.error_class = Some(fault.reason.class());
                record.extra.insert("error_name".to_owned(), fault.reason.name().into());
                let failure = self.failure(&tried, held, &fault, case_id)?;
                if let Some(href) = &failure.document.full_body_saved_to {
                    record.extra.insert("full_body_saved_to".to_owned(), href.as_str().into());
                }
                Err(Box::new(failure))
            }
        };
        Ok(Kept { record, result, reached })
    }

    /// Reads a body as an answer without its secrets: masked within its JSON, which stays JSON whatever a secret holds.
    fn read_answer(&self, bytes: &[u8], answering: Answering<'_>) -> Result<(Case, Applied), Fault> {
        let mut applied = Applied::default();
        let masked = serde_json::from_slice(bytes).ok().and_then(|mut value: Value| {
            self.redactor.json(&mut value, &mut applied);
            (!applied.is_empty()).then(|| value.to_string())
        });
        let read = masked.as_ref().map_or(bytes, |text| text.as_bytes());
        let case = self.dialect.answer(read, answering)?;
        // Asked last, and of what came: a reader of JSON keeps one of the two values, and says nothing.
        refuse_duplicate_keys(bytes)?;
        Ok((case, applied))
    }

    fn finish_answer(&self, mut case: Case, applied: &Applied) -> Result<Case, WriteError> {
        crate::record::large_payload::move_large(&mut case, &self.run, self.limits.payload)?;
        if let Outcome::Ok(answer) = &mut case.outcome {
            let output = &mut answer.final_output;
            if !applied.is_empty() {
                let listed = output.redactions_applied.get_or_insert_default();
                listed.extend(applied.names().into_iter().map(str::to_owned));
            }
            output.output_hash.get_or_insert_with(|| output.content.short_hash());
        }
        Ok(case)
    }

    fn failure(&self, tried: &Try, held: Held, fault: &Fault, case_id: &CaseId) -> Result<Failure, WriteError> {
        let reply = tried.reply.as_ref();
        let status = reply.and_then(|reply| reply.status);
        let mut applied = Applied::default();
        let whose = Whose { case_id, attempt: tried.number, reason: fault.reason };
        let saved = match reply {
            Some(reply) => self.save_body(held, reply, whose, &mut applied)?,
            None => None,
        };
        let mut extra = Extra::new();
        if !fault.violations.is_empty() {
            let listed = fault.violations.iter().take(MAX_VIOLATIONS);
            let listed = listed.filter_map(|violation| serde_json::to_value(violation).ok()).collect();
            let mut listed = Value::Array(listed);
            // They quote the agent, and the runner's own words around that are no secrets.
            self.redactor.json(&mut listed, &mut applied);
            extra.insert("violations".to_owned(), listed);
            let omitted = fault.violations.len().saturating_sub(MAX_VIOLATIONS);
            if omitted > 0 {
                extra.insert("violations_omitted".to_owned(), omitted.into());
            }
        }
        if let Some(program) = &tried.program {
            extra.extend(process_failure::of_program(program, &self.run, &self.redactor, whose, &mut applied)?);
        }
        let message = self.redactor.text(&fault.message, &mut applied);
        if !applied.is_empty() {
            extra.insert(REDACTIONS_APPLIED.to_owned(), applied.names().into());
        }
        let (snippet, body, meta) = match saved {
            Some(saved) => (Some(saved.snippet), Some(saved.body), Nullable::Value(saved.meta)),
            None => (None, None, Nullable::Null),
        };
        let document = RunnerFailure {
            class: fault.reason.class(),
            url: self.url.clone(),
            attempt: u64::from(tried.number).into(),
            timeout_ms: Some(self.timeout_ms.into()),
            latency_ms: Some(latency(tried)),
            status: status.map(|status| u64::from(status.as_u16()).into()),
            status_text: status.and_then(|status| status.canonical_reason()).map(str::to_owned),
            error_name: Some(fault.reason.name().to_owned()),
            error_message: Some(message),
            body_snippet: snippet,
            full_body_saved_to: body,
            full_body_meta_saved_to: meta,
            extra,
        };
        let status = status.map(|status| status.as_u16());
        let asked = reply.and_then(|reply| header(&reply.headers, "retry-after"));
        let failed = Failed {
            attempt: tried.number,
            class: fault.reason.class(),
            status,
            retry_after: asked.and_then(|asked| retry::retry_after(asked, tried.ended.at)),
        };
        let note = FailureNote { class: fault.reason.class(), name: fault.reason.name(), status };
        Ok(Failure { document, failed, note })
    }
}

/// What a key means that is there twice is anybody's guess (RFC 8259, section 4), so there is no answer to go by.
fn refuse_duplicate_keys(bytes: &[u8]) -> Result<(), Fault> {
    let DuplicateKeys { listed, left_out } = locate::duplicate_keys(&String::from_utf8_lossy(bytes));
    if listed.is_empty() {
        return Ok(());
    }
    let reason = Reason::DuplicateKey;
    let message = format!("the body has {} keys twice", listed.len() + left_out);
    let violation = |duplicate: DuplicateKey| Violation {
        code: reason.name(),
        pointer: duplicate.pointer,
        message: "the key is there twice".to_owned(),
        expected: "each key once".to_owned(),
    };
    Err(Fault { violations: listed.into_iter().map(violation).collect(), ..Fault::new(reason, message) })
}

fn record(tried: &Try) -> Attempt {
    let mut extra = Extra::new();
    if let Some(status) = tried.reply.as_ref().and_then(|reply| reply.status) {
        extra.insert("status".to_owned(), status.as_u16().into());
    }
    Attempt {
        attempt: u64::from(tried.number).into(),
        started_at: tried.started.iso(),
        latency_ms: Some(latency(tried)),
        outcome: AttemptOutcome::Ok,
        error_class: None,
        extra,
    }
}

fn latency(tried: &Try) -> Millis {
    u64::try_from(tried.latency().as_millis()).unwrap_or(u64::MAX).into()
}

/// True for failures that come after a connection was made.
const fn is_past_connecting(reason: Reason) -> bool {
    !matches!(
        reason,
        Reason::ConnectTimeout
            | Reason::Dns
            | Reason::ConnectionRefused
            | Reason::Unreachable
            | Reason::Tls
            | Reason::ConnectionFailed
            | Reason::RequestFailed
            | Reason::AgentNotStarted
    )
}

/// Puts a complete artifact together from the last try and the records of all.
pub(crate) fn artifact(
    result: Result<Box<Case>, RunnerFailure>,
    case_id: &CaseId,
    side: Side,
    attempts: Vec<Attempt>,
) -> Case {
    match result {
        Ok(case) => Case { attempts: Some(attempts), ..*case },
        Err(failure) => Case {
            case_id: case_id.clone(),
            version: side,
            workflow_id: None,
            attempts: Some(attempts),
            outcome: Outcome::RunnerError(failure),
            extra: Extra::new(),
        },
    }
}
