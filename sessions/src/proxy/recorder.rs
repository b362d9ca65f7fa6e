//! What is recorded of each request, where it goes, and what happens if it cannot be recorded. The proxy knows no store.

use std::collections::HashSet;
use std::error::Error;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::body::Bytes;
use axum::http::HeaderMap;
use jiff::Timestamp;

use super::answer_reader::RECORDING;
use super::request_body::is_encoded;
use crate::event::{Api, EventBody, EventError, LlmCall, LlmRequest, LlmResponse, SessionEvent};
use crate::protocol::{AnsweredCalls, request_from_body};

/// A store of records, as the proxy needs it. All methods are called on threads that may block.
pub trait Records: Send + Sync {
    /// Adds records, and returns when they are durable.
    fn record(&self, events: Vec<SessionEvent>) -> Result<(), RecordError>;

    /// A model request is about to leave: what the agent did before it is done. The request waits for this.
    fn turn_begins(&self) {}

    /// Returns false if a budget has no further request to a model. It is called once before each of them.
    fn may_send(&self) -> bool {
        true
    }

    /// A request has this secret. It is called before any record of the request, once for each value.
    fn saw_secret(&self, secret: &Secret);

    /// Reports a problem to the user.
    fn warn(&self, message: &str);
}

#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct RecordError(#[from] pub Box<dyn Error + Send + Sync>);

/// A value that no output shows: `Debug` is masked, and neither `Display` nor serialisation exists.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Secret(String);

impl Secret {
    pub(super) const fn new(text: String) -> Self {
        Self(text)
    }

    /// Returns the text itself. Only code that masks it may call this.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

/// Values of keys that are remembered. An agent has one or two.
const MAX_SECRETS: usize = 1024;

/// What the proxy saw.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProxyCounts {
    /// Requests that ask a model.
    pub model_requests: u64,
    /// Those whose record is in the store.
    pub recorded: u64,
    /// Other requests, such as `GET …/models`, and those that were refused.
    pub unrecorded_requests: u64,
    /// Attempts to record that failed.
    pub failures: u64,
}

/// A record was not added to the store, and the session must not go on without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the session cannot be recorded, and its recording is required")]
pub(super) struct RecordingRequired;

pub(super) struct Recorder {
    records: Arc<dyn Records>,
    is_required: bool,
    has_failed: AtomicBool,
    calls: Mutex<AnsweredCalls>,
    secrets: Mutex<HashSet<Secret>>,
    model_requests: AtomicU64,
    recorded: AtomicU64,
    unrecorded_requests: AtomicU64,
    failures: AtomicU64,
}

/// A request to a model, as far as it is known before its answer.
pub(super) struct AskedRequest {
    pub(super) api: Api,
    pub(super) at: Timestamp,
    pub(super) started: Instant,
    /// `None` if the body is too large to be recorded.
    pub(super) body: Option<Bytes>,
}

impl Recorder {
    pub(super) fn new(session_id: &str, records: Arc<dyn Records>, is_required: bool) -> Self {
        let calls = Mutex::new(AnsweredCalls::new(session_id));
        let (has_failed, secrets) = Default::default();
        let (model_requests, recorded, unrecorded_requests, failures) = Default::default();
        Self {
            records,
            is_required,
            has_failed,
            calls,
            secrets,
            model_requests,
            recorded,
            unrecorded_requests,
            failures,
        }
    }

    pub(super) fn counts(&self) -> ProxyCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ProxyCounts {
            model_requests: read(&self.model_requests),
            recorded: read(&self.recorded),
            unrecorded_requests: read(&self.unrecorded_requests),
            failures: read(&self.failures),
        }
    }

    pub(super) fn count_unrecorded_request(&self) {
        self.unrecorded_requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns whether a further request to a model may leave.
    pub(super) async fn may_send(&self) -> bool {
        let records = self.records.clone();
        tokio::task::spawn_blocking(move || records.may_send()).await.unwrap_or(false)
    }

    /// Records what a request states about the time before it. The request leaves after this.
    pub(super) async fn before_request(
        self: &Arc<Self>,
        request: &AskedRequest,
        secrets: Vec<Secret>,
    ) -> Result<(), RecordingRequired> {
        self.model_requests.fetch_add(1, Ordering::Relaxed);
        let (api, body) = (request.api, request.body.clone());
        let recorded = self.blocking(move |recorder| {
            recorder.remember(secrets);
            let answered = |body: Bytes| {
                let mut calls = recorder.calls.lock().unwrap_or_else(PoisonError::into_inner);
                calls.answered(api, &body)
            };
            let events = body.map(answered).unwrap_or_default();
            let recorded = if events.is_empty() { Ok(()) } else { recorder.records.record(events) };
            // After the results of the calls, so that the changes that they made follow them in the record.
            recorder.records.turn_begins();
            recorded
        });
        recorded.await
    }

    /// Records a model call. The last piece of its answer is passed on after this. `answer` returns its response and error.
    pub(super) async fn call(
        self: &Arc<Self>,
        request: &AskedRequest,
        parsed: ParsedRequest,
        answer: impl FnOnce() -> (Option<LlmResponse>, Option<EventError>) + Send + 'static,
    ) -> Result<(), RecordingRequired> {
        let (at, latency) = (request.at, request.started.elapsed());
        let (request, problem) = parsed.get().await;
        let recorded = self.blocking(move |recorder| {
            let (response, error) = answer();
            if let Some(response) = &response {
                // Before the agent can answer them.
                let mut calls = recorder.calls.lock().unwrap_or_else(PoisonError::into_inner);
                calls.asked(&response.tool_calls, at.saturating_add(latency).unwrap_or(at));
            }
            let latency_ms = u64::try_from(latency.as_millis()).ok();
            let call = LlmCall { request, response, latency_ms, cost: None };
            let mut event = SessionEvent::captured(at, EventBody::LlmCall(call));
            event.error = error.or(problem);
            // An answer that could not be read is not a whole record.
            let is_whole = event.error.as_ref().is_none_or(|error| error.kind != RECORDING);
            recorder.records.record(vec![event])?;
            recorder.recorded.fetch_add(u64::from(is_whole), Ordering::Relaxed);
            Ok(())
        });
        recorded.await
    }

    fn remember(&self, secrets: Vec<Secret>) {
        for secret in secrets {
            let mut known = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
            if known.contains(&secret) {
                continue;
            }
            if known.len() < MAX_SECRETS {
                known.insert(secret.clone());
            }
            drop(known);
            self.records.saw_secret(&secret);
        }
    }

    /// Runs code of the store on a thread that may block. A failure or a panic in it fails nothing but the record.
    async fn blocking(
        self: &Arc<Self>,
        run: impl FnOnce(&Self) -> Result<(), RecordError> + Send + 'static,
    ) -> Result<(), RecordingRequired> {
        if self.is_required && self.has_failed.load(Ordering::Relaxed) {
            return Err(RecordingRequired);
        }
        let recorder = self.clone();
        let problem = match tokio::task::spawn_blocking(move || run(&recorder)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the recorder panicked".to_owned(),
        };
        self.failures.fetch_add(1, Ordering::Relaxed);
        // One message is enough: the counter has the rest.
        if !self.has_failed.swap(true, Ordering::Relaxed) {
            let consequence = if self.is_required { "further requests are refused" } else { "the agent goes on" };
            let (records, message) = (self.records.clone(), format!("cannot record: {problem}; {consequence}"));
            let _ = tokio::task::spawn_blocking(move || records.warn(&message)).await;
        }
        if self.is_required { Err(RecordingRequired) } else { Ok(()) }
    }
}

/// A request that is parsed while the server works on it.
pub(super) struct ParsedRequest(tokio::task::JoinHandle<(LlmRequest, Option<EventError>)>);

impl ParsedRequest {
    pub(super) fn start(request: &AskedRequest, headers: &HeaderMap) -> Self {
        let (api, body, is_encoded) = (request.api, request.body.clone(), is_encoded(headers));
        Self(tokio::task::spawn_blocking(move || {
            let unread = |message: &str| {
                let request = LlmRequest { api: Some(api), ..LlmRequest::default() };
                let error = EventError { kind: RECORDING.to_owned(), status: None, message: message.to_owned() };
                (request, Some(error))
            };
            let Some(body) = body else { return unread("the request is too large, and its content is not recorded") };
            if is_encoded {
                return unread("the request is compressed, and its content is not recorded");
            }
            match serde_json::from_slice(&body) {
                Ok(body) => (request_from_body(api, body), None),
                Err(error) => unread(&format!("the request is not JSON that can be read: {error}")),
            }
        }))
    }

    async fn get(self) -> (LlmRequest, Option<EventError>) {
        // The task does not panic, and is not cancelled.
        self.0.await.unwrap_or_default()
    }
}
