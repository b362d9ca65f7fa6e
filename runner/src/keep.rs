//! What a try leaves behind: the artifact of an answer, or a failure with its whole body. It writes assets, and decides
//! neither on another attempt nor when a case is complete.

use std::sync::Arc;

use counterproof_artifact::store::RunWriter;
use counterproof_artifact::write::WriteError;
use counterproof_artifact::{
    AssetKind, Attempt, AttemptOutcome, Case, CaseId, Extra, FailureMeta, Href, Millis, Outcome, RunnerFailure, Side,
    Tri,
};
use reqwest::header::LOCATION;
use serde_json::Value;

use crate::agent::{Answering, Dialect, Protocol};
use crate::attempt::{Reply, Try};
use crate::body::header;
use crate::endpoint::without_secrets;
use crate::event::FailureNote;
use crate::fault::{Fault, Reason};
use crate::redact::Redactor;
use crate::retry::{self, Failed};
use crate::settings::ByteLimits;
use crate::traces;

/// Response headers that are kept: they explain a failure and hold no secrets. Times of day are not among them.
const KEPT_HEADERS: [&str; 10] = [
    "content-type",
    "content-length",
    "content-encoding",
    "transfer-encoding",
    "retry-after",
    "allow",
    "server",
    "x-request-id",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
];

/// What `redactions_applied` says where the agent echoed a secret that the runner had sent.
const REDACTION: &str = "request_secrets";

/// How many violations an artifact lists; the rest is counted.
const MAX_VIOLATIONS: usize = 20;

/// Longest header value that is kept.
const MAX_HEADER_CHARS: usize = 400;

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

struct SavedBody {
    body: Href,
    meta: Href,
    snippet: String,
}

impl Keeper {
    /// Judges a try, and keeps what there is to keep of it.
    pub(crate) fn keep(&self, tried: &Try, case_id: &CaseId) -> Result<Kept, WriteError> {
        let side = self.run.side();
        let reached = match &tried.fault {
            Some(fault) => tried.reply.is_some() || is_past_connecting(fault.reason),
            None => true,
        };
        let judged = match (&tried.fault, &tried.reply) {
            (Some(fault), _) => Err(fault.clone()),
            (None, Some(reply)) => {
                self.dialect.answer(&reply.body.bytes, Answering { case_id, side, received: tried.ended.at })
            }
            (None, None) => Err(Fault::new(Reason::RequestFailed, "there was no response")),
        };
        let mut record = record(tried);
        let result = match judged {
            Ok(case) => {
                let masked = tried.reply.as_ref().is_some_and(|reply| reply.body.masked);
                Ok(Box::new(self.finish_answer(case, masked)?))
            }
            Err(fault) => {
                record.outcome = AttemptOutcome::RunnerError;
                record.error_class = Some(fault.reason.class());
                record.extra.insert("error_name".to_owned(), fault.reason.name().into());
                let failure = self.failure(tried, &fault, case_id)?;
                if let Some(href) = &failure.document.full_body_saved_to {
                    record.extra.insert("full_body_saved_to".to_owned(), href.as_str().into());
                }
                Err(Box::new(failure))
            }
        };
        Ok(Kept { record, result, reached })
    }

    fn finish_answer(&self, mut case: Case, masked: bool) -> Result<Case, WriteError> {
        crate::payload::move_large(&mut case, &self.run, self.limits.payload)?;
        if let Outcome::Ok(answer) = &mut case.outcome {
            let output = &mut answer.final_output;
            if masked {
                output.redactions_applied.get_or_insert_default().push(REDACTION.to_owned());
            }
            output.output_hash.get_or_insert_with(|| output.content.short_hash());
        }
        Ok(case)
    }

    fn failure(&self, tried: &Try, fault: &Fault, case_id: &CaseId) -> Result<Failure, WriteError> {
        let reply = tried.reply.as_ref();
        let status = reply.and_then(|reply| reply.status);
        let saved = match reply {
            Some(reply) if !reply.body.bytes.is_empty() => Some(self.save_body(reply, fault, case_id, tried.number)?),
            _ => None,
        };
        let mut extra = Extra::new();
        if !fault.violations.is_empty() {
            let listed = fault.violations.iter().take(MAX_VIOLATIONS);
            let listed = listed.filter_map(|violation| serde_json::to_value(violation).ok()).collect();
            extra.insert("violations".to_owned(), Value::Array(listed));
            let omitted = fault.violations.len().saturating_sub(MAX_VIOLATIONS);
            if omitted > 0 {
                extra.insert("violations_omitted".to_owned(), omitted.into());
            }
        }
        if let Some(program) = &tried.program {
            extra.extend(traces::of_program(program, &self.run, &self.redactor, case_id, tried.number)?);
        }
        let (snippet, body, meta) = match saved {
            Some(saved) => (Some(saved.snippet), Some(saved.body), Tri::Value(saved.meta)),
            None => (None, None, Tri::Null),
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
            error_message: Some(fault.message.clone()),
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

    fn save_body(&self, reply: &Reply, fault: &Fault, case_id: &CaseId, attempt: u32) -> Result<SavedBody, WriteError> {
        let body = &reply.body;
        // Never `.json`: every `.json` file of a run folder is a document that the runner vouches for.
        let extension = if std::str::from_utf8(&body.bytes).is_ok() { "txt" } else { "bin" };
        let name = format!("{case_id}.attempt{attempt}");
        let file = format!("{name}.body.{extension}");
        let saved = self.run.write_asset(&file, AssetKind::FullBody, Some(case_id), &body.bytes)?;
        let meta = FailureMeta {
            case_id: Some(case_id.clone()),
            version: Some(self.run.side()),
            class: Some(fault.reason.class().as_str().to_owned()),
            content_type: self.kept_header(reply, "content-type").into(),
            encoding: self.kept_header(reply, "content-encoding").into(),
            bytes_written: Some(saved.size_bytes),
            bytes_total: body.total.map(Into::into).into(),
            truncated: Some(body.cut.as_ref().is_some_and(|cut| cuts_short(cut.reason))),
            sha256: saved.sha256,
            headers: Some(self.kept_headers(reply)),
            note: note(reply),
            ..FailureMeta::default()
        };
        let bytes = serde_json::to_string_pretty(&meta)
            .map_err(|error| WriteError { path: self.run.folder().join(saved.href.as_str()), source: error.into() })?;
        let file = format!("{name}.meta.json");
        let meta = self.run.write_asset(&file, AssetKind::FailureMeta, Some(case_id), (bytes + "\n").as_bytes())?;
        Ok(SavedBody { body: saved.href, meta: meta.href, snippet: snippet(&body.bytes, self.limits.snippet) })
    }

    fn kept_header(&self, reply: &Reply, name: &str) -> Option<String> {
        let value = self.redactor.mask_text(header(&reply.headers, name)?);
        Some(value.chars().take(MAX_HEADER_CHARS).collect())
    }

    fn kept_headers(&self, reply: &Reply) -> Extra {
        let kept =
            KEPT_HEADERS.iter().filter_map(|name| Some(((*name).to_owned(), self.kept_header(reply, name)?.into())));
        // Where a redirect leads is worth knowing; its query is not, since that is where tokens travel.
        let location = header(&reply.headers, LOCATION.as_str())
            .and_then(|target| reqwest::Url::parse(&self.url).ok()?.join(target).ok())
            .map(|target| (LOCATION.to_string(), self.redactor.mask_text(&without_secrets(&target)).into()));
        kept.chain(location).collect()
    }
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

/// True where there was more of the body than was kept; a body that cannot be decoded is kept whole.
const fn cuts_short(reason: Reason) -> bool {
    !matches!(reason, Reason::UnknownEncoding | Reason::UndecodableBody)
}

/// What a reader of the saved body should know: how it was saved, and why it is cut where the class does not say.
fn note(reply: &Reply) -> Option<String> {
    let cut = reply.body.cut.as_ref().map(|cut| cut.message.as_str());
    let masked = reply.body.masked.then_some("secrets that the runner had sent were masked");
    let parts: Vec<&str> = cut.into_iter().chain(reply.body.note).chain(masked).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The start of a body as text of at most `limit` bytes.
fn snippet(bytes: &[u8], limit: usize) -> String {
    let mut text = String::from_utf8_lossy(&bytes[..bytes.len().min(limit)]).into_owned();
    // Bytes that are no text take more room as replacement characters than they took before.
    text.truncate(text.floor_char_boundary(limit));
    text
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snippet_is_text_within_its_limit() {
        assert_eq!(snippet("héllo".as_bytes(), 2), "h");
        assert_eq!(snippet("héllo".as_bytes(), 3), "hé");
        assert_eq!(snippet(b"ab\xff\xff", 4), "ab");
        assert_eq!(snippet(b"", 4), "");
    }
}
