//! A tool call as an adapter passes it to the session, the calls that are open, and the previews of what they contain.

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use counterproof_artifact::Sha256Digest;
use counterproof_ledger::event::{
    ArgsPreview, CallError, CallId, CallRef, CallStatus, DecisionRecord, ErrorClass, Hint, ResultPreview,
};
use counterproof_redaction::{Applied, Redactor};
use serde_json::Value;

#[derive(Debug, Clone)]
pub struct IncomingCall<'a> {
    pub tool_name: &'a str,
    pub args: IncomingArgs<'a>,
    pub bytes_in: u64,
    /// Set if the request answers questions of the server about an earlier request.
    pub retry: Option<Retry<'a>>,
}

#[derive(Debug, Clone)]
pub enum IncomingArgs<'a> {
    Inspected {
        /// The arguments; an empty object if they are missing.
        value: &'a Value,
        text: Cow<'a, str>,
    },
    /// The request has no agreed meaning, because parsers disagree on it. The call is refused in every mode.
    Ambiguous { hash: Sha256Digest, problem: String },
    /// The arguments are too large to be inspected, or have values that cannot be represented.
    Uninspected {
        hash: Sha256Digest,
        /// The text, for the preview; none if it is too large.
        text: Option<Cow<'a, str>>,
    },
}

/// The part of a request that makes it the continuation of an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry<'a> {
    pub request_state: Option<&'a str>,
}

#[derive(Debug)]
pub struct CallResult<'a> {
    pub status: CallStatus,
    /// The error, unless the status is `OK`. Its message is redacted and cut by the session.
    pub error: Option<CallError>,
    pub bytes_out: u64,
    pub result: ResultBytes<'a>,
}

impl CallResult<'_> {
    pub const fn cancelled() -> Self {
        Self { status: CallStatus::Cancelled, error: None, bytes_out: 0, result: ResultBytes::None }
    }

    pub const fn without_response() -> Self {
        // Whether the tool succeeds is not known.
        Self { status: CallStatus::Ok, error: None, bytes_out: 0, result: ResultBytes::None }
    }

    pub fn unanswered(status: CallStatus, class: ErrorClass, message: impl Into<String>) -> Self {
        let error = CallError { class, message: message.into(), code: None, retryable: None };
        Self { status, error: Some(error), bytes_out: 0, result: ResultBytes::None }
    }
}

#[derive(Debug)]
pub enum ResultBytes<'a> {
    None,
    Inspected(&'a [u8]),
    TooLarge { hash: Sha256Digest },
}

/// Most calls that wait for input. Beyond it, the oldest are given up.
const MAX_WAITING: usize = 1000;

const MAX_WAIT: Duration = Duration::from_hours(1);

/// How often a request may continue one call. A further request is a new call, which rules count.
const MAX_CONTINUATIONS: u32 = 100;

#[derive(Debug, Default)]
pub(super) struct OpenCalls {
    calls: HashMap<CallId, OpenCall>,
    refusals: Vec<Refusal>,
}

#[derive(Debug)]
pub(super) struct OpenCall {
    pub(super) call: CallRef,
    /// The name in the request. That of the record is redacted.
    pub(super) tool_name: String,
    pub(super) started: Instant,
    pub(super) waiting: Option<WaitsForInput>,
    continuations: u32,
}

/// A call whose server asked the client for input. The client sends the call again, with the input.
#[derive(Debug)]
pub(super) struct WaitsForInput {
    request_state: Option<String>,
    since: Instant,
}

impl OpenCalls {
    pub(super) fn insert(&mut self, call: CallRef, tool_name: &str) {
        let tool_name = tool_name.to_owned();
        let open = OpenCall { call, tool_name, started: Instant::now(), waiting: None, continuations: 0 };
        self.calls.insert(open.call.call_id.clone(), open);
    }

    pub(super) fn insert_refusal(&mut self, refusal: Refusal) {
        self.refusals.push(refusal);
    }

    pub(super) fn take_refusal(&mut self, id: &CallId) -> bool {
        let place = self.refusals.iter().position(|refusal| refusal.call.call_id == *id);
        place.map(|place| self.refusals.swap_remove(place)).is_some()
    }

    pub(super) fn take_refusals(&mut self) -> Vec<Refusal> {
        std::mem::take(&mut self.refusals)
    }

    pub(super) fn take(&mut self, id: &CallId) -> Option<OpenCall> {
        self.calls.remove(id)
    }

    pub(super) fn take_all(&mut self) -> Vec<OpenCall> {
        let mut calls: Vec<_> = self.calls.drain().map(|(_, call)| call).collect();
        // By their ids, which are ordered by time: the ends have an order that does not change.
        calls.sort_by(|a, b| a.call.call_id.cmp(&b.call.call_id));
        calls
    }

    /// Removes the call that is open for the longest time.
    pub(super) fn take_oldest(&mut self) -> Option<OpenCall> {
        // Ids are ordered by time.
        let oldest = self.calls.keys().min()?.clone();
        self.calls.remove(&oldest)
    }

    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    pub(super) fn wait_for_input(&mut self, id: &CallId, request_state: Option<String>) {
        if let Some(call) = self.calls.get_mut(id) {
            call.waiting = Some(WaitsForInput { request_state, since: Instant::now() });
        }
    }

    /// Removes and returns waiting calls that no request will continue.
    pub(super) fn take_abandoned(&mut self) -> Vec<OpenCall> {
        let mut waiting: Vec<(Instant, CallId)> =
            self.calls.iter().filter_map(|(id, call)| Some((call.waiting.as_ref()?.since, id.clone()))).collect();
        waiting.sort();
        // Bounded in number and time: neither the client nor the server has to continue a call.
        let excess = waiting.len().saturating_sub(MAX_WAITING);
        let is_abandoned =
            |(index, (since, _)): &(usize, (Instant, CallId))| *index < excess || since.elapsed() >= MAX_WAIT;
        let abandoned = waiting.into_iter().enumerate().filter(is_abandoned);
        abandoned.filter_map(|(_, (_, id))| self.calls.remove(&id)).collect()
    }

    /// Returns the waiting call that a request continues: the same tool, the same arguments and the state that the server gave.
    /// Returns `None` for other requests, also if they have the form of a continuation.
    pub(super) fn resume(&mut self, tool: &str, hash: &Sha256Digest, request_state: Option<&str>) -> Option<CallId> {
        let mut found = self.calls.values_mut().filter(|open| {
            open.waiting.as_ref().is_some_and(|waiting| waiting.request_state.as_deref() == request_state)
                // A call that is continued is not decided again, so a server and an agent could go on without rules.
                && open.continuations < MAX_CONTINUATIONS
                && open.tool_name == tool
                // Other arguments are another call: the rules have not seen it.
                && open.call.args_hash == *hash
        });
        // The oldest, if several wait: ids are ordered by time.
        let first = found.next()?;
        let open =
            found.fold(first, |oldest, open| if open.call.call_id < oldest.call.call_id { open } else { oldest });
        open.waiting = None;
        open.continuations += 1;
        Some(open.call.call_id.clone())
    }
}

pub const MAX_PREVIEW_BYTES: usize = 16 * 1024;

/// The preview of a payload that is too large to be inspected.
pub const TRUNCATED: &str = "[TRUNCATED]";

/// Longest name of a tool in events, in bytes: as in the tables of the ledger.
const MAX_NAME_BYTES: usize = 512;

const MAX_MESSAGE_BYTES: usize = 500;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Preview {
    pub(super) text: String,
    pub(super) is_truncated: bool,
}

/// Returns the preview of arguments, and the hash of their bytes if they are not inspected.
pub(super) fn args_preview(args: &IncomingArgs<'_>, redactor: &Redactor) -> (ArgsPreview, Option<Sha256Digest>) {
    let of_text = |text: &str| {
        let preview = preview(text.as_bytes(), redactor);
        ArgsPreview { truncated: preview.is_truncated, args_preview: Some(preview.text) }
    };
    match args {
        IncomingArgs::Inspected { text, .. } => (of_text(text), None),
        IncomingArgs::Uninspected { hash, text: Some(text) } => (of_text(text), Some(*hash)),
        IncomingArgs::Uninspected { hash, text: None } => {
            (ArgsPreview { truncated: true, args_preview: Some(TRUNCATED.to_owned()) }, Some(*hash))
        }
        // Parsers disagree on such arguments. A preview of one reading would mislead.
        IncomingArgs::Ambiguous { .. } => (ArgsPreview { truncated: true, args_preview: None }, None),
    }
}

/// Returns the preview of a result, and the hash of its bytes if the preview does not have all of them.
pub(super) fn result_preview(result: &ResultBytes<'_>, redactor: &Redactor) -> (ResultPreview, Option<Sha256Digest>) {
    match result {
        ResultBytes::None => (ResultPreview::default(), None),
        ResultBytes::Inspected(bytes) => {
            let preview = preview(bytes, redactor);
            let hash = preview.is_truncated.then(|| Sha256Digest::from_bytes(bytes));
            (ResultPreview { truncated: preview.is_truncated, result_preview: Some(preview.text) }, hash)
        }
        ResultBytes::TooLarge { hash } => {
            (ResultPreview { truncated: true, result_preview: Some(TRUNCATED.to_owned()) }, Some(*hash))
        }
    }
}

fn preview(payload: &[u8], redactor: &Redactor) -> Preview {
    let is_truncated = payload.len() > MAX_PREVIEW_BYTES;
    let redacted = if is_truncated {
        // The cut may be inside a secret. Its first part must be masked as well.
        redactor.truncated_bytes(&payload[..MAX_PREVIEW_BYTES], &mut Applied::default())
    } else {
        redactor.bytes(payload, &mut Applied::default())
    };
    // Masks can be longer than what they replace.
    let text = cut(&String::from_utf8_lossy(without_torn_character(&redacted)), MAX_PREVIEW_BYTES).to_owned();
    Preview { text, is_truncated }
}

/// Redacts the message of an error and cuts it to its first line, so that it holds no stack trace.
pub(super) fn redacted_message(text: &str, redactor: &Redactor) -> String {
    let text = redactor.text(text, &mut Applied::default());
    // One line, because it is printed in tables. What follows is often a stack trace.
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    cut(line, MAX_MESSAGE_BYTES).to_owned()
}

pub(super) fn redacted_name(text: &str, redactor: &Redactor) -> String {
    cut(&redactor.text(text, &mut Applied::default()), MAX_NAME_BYTES).to_owned()
}

/// Redacts all texts of a decision that a policy chooses. Names of rules and codes stay: programs read them.
pub(super) fn redact_decision(record: &mut DecisionRecord, redactor: &Redactor) {
    let DecisionRecord { explain, hint, terminate, .. } = record;
    let mut applied = Applied::default();
    let mut redact = |text: &mut String| *text = redactor.text(text, &mut applied);
    redact(&mut explain.summary);
    if let Some(terminate) = terminate {
        redact(&mut terminate.terminate_message);
    }
    let Some(Hint { hint_text, suggested_args, retry_advice, .. }) = hint else { return };
    redact(hint_text);
    retry_advice.iter_mut().for_each(redact);
    if let Some(args) = suggested_args {
        redactor.json(args, &mut applied);
    }
}

fn without_torn_character(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    }
}

fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    pub run_id: String,
    pub call: CallRef,
    pub decision: DecisionRecord,
    pub(super) started: Instant,
}
