//! The client of a model server: one request at a time, until an answer is whole.

use std::error::Error;
use std::sync::OnceLock;
use std::time::{Instant, SystemTime};

use counterproof_guard::http::{Upstream, UpstreamUrl, UpstreamUrlError, last_cause};
use counterproof_safe_run::Cancellation;
use counterproof_sessions::event::{Api, EventBody, EventError, LlmCall, LlmResponse, SessionEvent};
use counterproof_sessions::protocol::{AnswerStream, error_message, request_from_body, response_from_body};
use hyper::Uri;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use jiff::Timestamp;
use reqwest::{Method, Response};
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::answer::Answer;
use super::options::ModelOptions;
use super::retry::{Failure, retry_after, wait_after};

/// A larger answer is malformed.
const MAX_ANSWER_BYTES: usize = 64 << 20;

/// Of an answer with an error status, only the start is read.
const MAX_ERROR_BYTES: usize = 1 << 20;

/// What the caller does around the attempts of one request.
pub trait Attempts {
    /// Returns false if the budget has no further request. Retries count as requests.
    fn may_send(&mut self) -> bool;

    /// Stores the record of an attempt that has ended, an `llm_call`.
    fn record(&mut self, event: SessionEvent) -> Result<(), RecordError>;
}

/// Why a record could not be stored.
pub type RecordError = Box<dyn Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error("invalid model URL: {0}")]
    Url(#[from] UpstreamUrlError),
    #[error("invalid path of the model URL: {0}")]
    Target(#[source] hyper::http::uri::InvalidUri),
    #[error("the API key has characters that a header cannot have")]
    Key,
    #[error("cannot create the HTTP client: {0}")]
    Client(#[source] reqwest::Error),
    #[error("cannot start the runtime of the HTTP client: {0}")]
    Runtime(#[source] std::io::Error),
}

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error("the budget has no further request")]
    Budget,
    #[error("cancelled")]
    Cancelled,
    #[error("cannot record a model call: {0}")]
    Record(#[source] RecordError),
    /// The server did not answer, or its answer cannot be used.
    #[error("{message} (attempts: {attempts})")]
    Model { message: String, attempts: u32 },
}

/// Asks one model. Redirects are not followed, because the server that they name must not get the key.
#[derive(Debug)]
pub struct ModelClient {
    options: ModelOptions,
    upstream: Upstream,
    /// Path and query.
    target: Uri,
    authorization: Option<HeaderValue>,
    runtime: Runtime,
    /// Why a request got no answer.
    unanswered: OnceLock<String>,
}

/// How an attempt ended: what came of the answer, and what is wrong with it.
struct Attempt {
    response: Option<LlmResponse>,
    problem: Option<Problem>,
}

struct Problem {
    error: EventError,
    failure: Failure,
}

impl Problem {
    /// A whole answer, in which nothing is answered.
    fn without_message(response: Option<&LlmResponse>) -> Self {
        // Some servers send their errors with a status of success.
        let body = response.map(|response| &response.body).filter(|body| !body["error"].is_null());
        let stated = body.and_then(|body| error_message(body.to_string().as_bytes()));
        let (message, failure) = match stated {
            Some(stated) => (stated_in_answer(&stated), Failure::Passing(None)),
            None => ("the answer has no choice with a message".to_owned(), Failure::Malformed),
        };
        Self { error: EventError { kind: "http".to_owned(), status: Some(200), message }, failure }
    }
}

impl Attempt {
    fn failed(response: Option<LlmResponse>, error: EventError, failure: Failure) -> Self {
        Self { response, problem: Some(Problem { error, failure }) }
    }

    fn malformed(response: Option<LlmResponse>, status: u16, message: impl Into<String>) -> Self {
        let error = EventError { kind: "http".to_owned(), status: Some(status), message: message.into() };
        Self::failed(response, error, Failure::Malformed)
    }

    /// The connection ended before the answer.
    fn cut(response: Option<LlmResponse>, message: impl Into<String>) -> Self {
        let error = EventError { kind: "cut".to_owned(), status: None, message: message.into() };
        Self::failed(response, error, Failure::Passing(None))
    }

    fn network(message: String) -> Self {
        let error = EventError { kind: "network".to_owned(), status: None, message };
        Self::failed(None, error, Failure::Passing(None))
    }
}

impl ModelClient {
    /// Must not be called, used or dropped on a thread of an async runtime: the client has a runtime of its own.
    pub fn new(options: ModelOptions) -> Result<Self, ModelError> {
        let (base, query) = match options.base_url.split_once('?') {
            Some((base, query)) => (base, Some(query)),
            None => (options.base_url.as_str(), None),
        };
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        let url: UpstreamUrl = format!("{}/chat/completions{query}", base.trim_end_matches('/')).parse()?;
        let target = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
        let target = target.parse().map_err(ModelError::Target)?;
        let authorization = options.api_key.as_ref().map(|key| {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose())).map_err(|_| ModelError::Key)?;
            value.set_sensitive(true);
            Ok::<_, ModelError>(value)
        });
        let authorization = authorization.transpose()?;
        let upstream = Upstream::new(url).map_err(ModelError::Client)?;
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        // One thread, so that idle connections are closed in time, also while no request runs.
        runtime.worker_threads(1).thread_name("model").enable_all();
        let runtime = runtime.build().map_err(ModelError::Runtime)?;
        Ok(Self { options, upstream, target, authorization, runtime, unanswered: OnceLock::new() })
    }

    /// Returns the base URL, which may contain credentials.
    pub fn base_url(&self) -> &str {
        &self.options.base_url
    }

    /// Returns why a request got no answer, if one did not.
    pub fn unanswered(&self) -> Option<&str> {
        self.unanswered.get().map(String::as_str)
    }

    /// Returns the body of a request. It depends on nothing but the options and the arguments.
    pub fn body(&self, messages: &[Value], tools: &Value) -> Value {
        let ModelOptions { model, stream, .. } = &self.options;
        let mut body = Map::new();
        body.insert("model".into(), model.as_str().into());
        body.insert("messages".into(), messages.into());
        if tools.as_array().is_some_and(|tools| !tools.is_empty()) {
            body.insert("tools".into(), tools.clone());
        }
        if *stream {
            body.insert("stream".into(), true.into());
            body.insert("stream_options".into(), json!({"include_usage": true}));
        }
        Value::Object(body)
    }

    /// Sends a request until its answer is whole, or no further attempt makes sense. Each attempt is recorded.
    pub fn ask(&self, body: &Value, cancel: &Cancellation, attempts: &mut dyn Attempts) -> Result<Answer, AskError> {
        let messages = body["messages"].as_array().map_or(0, Vec::len);
        let (mut attempt, mut malformed) = (0, 0);
        loop {
            if cancel.is_cancelled() {
                return Err(AskError::Cancelled);
            }
            if !attempts.may_send() {
                return Err(AskError::Budget);
            }
            attempt += 1;
            let (at, started) = (Timestamp::now(), Instant::now());
            let Attempt { mut response, mut problem } = self.attempt(body, cancel);
            self.mask(response.as_mut(), problem.as_mut());
            let answer = response.as_ref().and_then(|response| Answer::from_response(response, messages));
            let result = match (problem, answer) {
                (Some(problem), _) => Err(problem),
                (None, Some(answer)) => Ok(answer),
                (None, None) => Err(Problem::without_message(response.as_ref())),
            };
            let usage = response.as_ref().and_then(|response| response.usage);
            let call = LlmCall {
                request: request_from_body(Api::OpenaiChat, body.clone()),
                response,
                latency_ms: u64::try_from(started.elapsed().as_millis()).ok(),
                cost: self.options.price.zip(usage).map(|(price, usage)| price.cost(&usage)),
            };
            let mut event = SessionEvent::captured(at, EventBody::LlmCall(call));
            event.error = result.as_ref().err().map(|problem| problem.error.clone());
            attempts.record(event).map_err(AskError::Record)?;
            let Problem { error, failure } = match result {
                Ok(answer) => return Ok(answer),
                Err(problem) => problem,
            };
            if cancel.is_cancelled() {
                return Err(AskError::Cancelled);
            }
            malformed += u32::from(failure == Failure::Malformed);
            let wait = wait_after(failure, attempt, self.options.attempts, malformed, self.options.backoff);
            let Some(wait) = wait else {
                let error = AskError::Model { message: error.message, attempts: attempt };
                self.unanswered.get_or_init(|| error.to_string());
                return Err(error);
            };
            if !cancel.wait(wait) {
                return Err(AskError::Cancelled);
            }
        }
    }

    fn attempt(&self, body: &Value, cancel: &Cancellation) -> Attempt {
        let whole = self.options.request_timeout;
        let mut partial = None;
        self.runtime
            .block_on(async {
                tokio::select! {
                    attempt = timeout(whole, self.send(body, &mut partial)) => attempt.ok(),
                    () = cancel.cancelled() => None,
                }
            })
            .unwrap_or_else(|| {
                let response = partial.and_then(|stream: AnswerStream| stream.finish(true).response);
                if cancel.is_cancelled() {
                    return Attempt::cut(response, "cancelled");
                }
                Attempt::cut(response, format!("the answer did not end within {} s", whole.as_secs()))
            })
    }

    /// Makes one attempt. `partial` has what came of a stream, if this future is dropped.
    async fn send(&self, body: &Value, partial: &mut Option<AnswerStream>) -> Attempt {
        let idle = self.options.idle_timeout;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let accepted = if self.options.stream { "text/event-stream, application/json" } else { "application/json" };
        headers.insert(ACCEPT, HeaderValue::from_static(accepted));
        if let Some(authorization) = &self.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        let sending = self.upstream.send(Method::POST, &self.target, headers, Some(body.to_string().into()));
        let mut response = match timeout(idle, sending).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Attempt::network(self.failure(&error)),
            Err(_) => return Attempt::network(format!("{} did not answer within {} s", self.url(), idle.as_secs())),
        };
        let status = response.status();
        if !status.is_success() {
            return self.read_error(&mut response).await;
        }
        let content_type = response.headers().get(CONTENT_TYPE).map(|value| value.as_bytes().to_ascii_lowercase());
        let mut document = Vec::new();
        if content_type.is_some_and(|it| it.trim_ascii_start().starts_with(b"text/event-stream")) {
            *partial = Some(AnswerStream::new(Api::OpenaiChat));
        }
        let mut length = 0_usize;
        let cut = loop {
            let piece = match timeout(idle, response.chunk()).await {
                Ok(Ok(Some(piece))) => piece,
                Ok(Ok(None)) => break None,
                Ok(Err(error)) => break Some(format!("the connection broke: {}", last_cause(&error))),
                Err(_) => break Some(format!("the server sent nothing for {} s", idle.as_secs())),
            };
            length += piece.len();
            if length > MAX_ANSWER_BYTES {
                let message = format!("the answer is larger than {} MiB", MAX_ANSWER_BYTES >> 20);
                return Attempt::malformed(None, status.as_u16(), message);
            }
            match partial {
                Some(stream) => {
                    stream.push(&piece);
                    if stream.has_ended() {
                        break None;
                    }
                }
                None => document.extend_from_slice(&piece),
            }
        };
        match partial.take() {
            Some(stream) => streamed(stream, cut),
            None => whole(&document, status.as_u16(), cut),
        }
    }

    async fn read_error(&self, response: &mut Response) -> Attempt {
        let status = response.status();
        let header = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let asked_for = header.and_then(|value| retry_after(value, SystemTime::now()));
        let mut document = Vec::new();
        // Without its end, the start of an error is better than nothing.
        while let Ok(Ok(Some(piece))) = timeout(self.options.idle_timeout, response.chunk()).await {
            document.extend_from_slice(&piece);
            if document.len() >= MAX_ERROR_BYTES {
                document.truncate(MAX_ERROR_BYTES);
                break;
            }
        }
        let mut document = String::from_utf8_lossy(&document).into_owned();
        if let Some(key) = &self.options.api_key {
            // Before the text is cut, which could leave a part of the key.
            key.mask_text(&mut document);
        }
        let reason = status.canonical_reason().unwrap_or("an error without a message");
        let message = match error_message(document.as_bytes()) {
            Some(message) => message,
            None if status.is_redirection() => "the server redirects, and redirects are not followed".to_owned(),
            None => reason.to_owned(),
        };
        let body = serde_json::from_str(&document);
        let body = body.unwrap_or_else(|_| if document.is_empty() { Value::Null } else { Value::String(document) });
        let message = format!("the model server answered with status {}: {message}", status.as_u16());
        let error = EventError { kind: "http".to_owned(), status: Some(status.as_u16()), message };
        let response = response_from_body(Api::OpenaiChat, body);
        Attempt::failed(Some(response), error, Failure::of_status(status.as_u16(), asked_for))
    }

    /// Describes a request without an answer, without what the URL may contain.
    fn failure(&self, error: &reqwest::Error) -> String {
        let (url, cause) = (self.url(), last_cause(error));
        if error.is_connect() {
            format!("cannot connect to {url}: {cause}")
        } else {
            format!("{url} did not answer: {cause}")
        }
    }

    fn url(&self) -> String {
        self.upstream.url().recorded()
    }

    /// Removes the key from what the server sent: an error may quote it.
    fn mask(&self, response: Option<&mut LlmResponse>, problem: Option<&mut Problem>) {
        let Some(key) = &self.options.api_key else { return };
        if let Some(response) = response {
            let reason = response.finish_reason.take();
            let mut body = std::mem::take(&mut response.body);
            key.mask(&mut body);
            *response = response_from_body(Api::OpenaiChat, body);
            // A cut answer has none, also if its body states one.
            response.finish_reason = reason;
        }
        if let Some(problem) = problem {
            key.mask_text(&mut problem.error.message);
        }
    }
}

fn streamed(stream: AnswerStream, cut: Option<String>) -> Attempt {
    let streamed = stream.finish(cut.is_some());
    if streamed.is_complete && streamed.error.is_none() {
        return Attempt { response: streamed.response, problem: None };
    }
    let message = streamed.error.map(|error| stated_in_answer(&error));
    let message = message.or(cut).unwrap_or_else(|| "the stream ended before the answer".to_owned());
    Attempt::cut(streamed.response, message)
}

fn whole(document: &[u8], status: u16, cut: Option<String>) -> Attempt {
    let body = serde_json::from_slice::<Value>(document);
    if let Some(message) = cut {
        return Attempt::cut(body.ok().map(|body| response_from_body(Api::OpenaiChat, body)), message);
    }
    if let Ok(body) = body {
        return Attempt { response: Some(response_from_body(Api::OpenaiChat, body)), problem: None };
    }
    let body = Value::String(String::from_utf8_lossy(document).into_owned());
    Attempt::malformed(Some(response_from_body(Api::OpenaiChat, body)), status, "the answer is not JSON")
}

fn stated_in_answer(error: &str) -> String {
    format!("the model server reported an error in its answer: {error}")
}
