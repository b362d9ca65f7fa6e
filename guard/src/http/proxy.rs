//! The life of a proxy, and of one request: checked, decided, forwarded, answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, response};
use counterproof_ledger::event::{CallStatus, ErrorClass, RunStatus};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::timeout;

use super::connections::{ClientLimits, Connections};
use super::exchange::{Exchange, ResponseEnd, Shared};
use super::inspection::{Answer, ForwardedRequest, Inspection, RequestDecision};
use super::messages::Scope;
use super::request_body::{self, ContentType, ReadError, RequestBody, can_come_from_a_form, is_compressed};
use super::response_body::ResponseBody;
use super::upstream::{Reachability, Upstream};
use super::{PeerRules, UpstreamUrl};
use crate::mcp::error_message;
use crate::session::{CallResult, MAX_INSPECT_BYTES, OpenCallsEnd, Problem, Session};

const SESSION_ID: &str = "mcp-session-id";

/// A call whose client has gone is cancelled this long after the last stream of its session has ended.
const ABANDONED_AFTER: Duration = Duration::from_mins(5);

const CHECK_EVERY: Duration = Duration::from_secs(10);

/// The JSON-RPC error code for a failure of the proxy or the server.
const INTERNAL_ERROR: i64 = -32603;

const INVALID_REQUEST: i64 = -32600;

pub(super) struct Proxy {
    shared: Shared,
    pub(super) upstream: Upstream,
    pub(super) peers: PeerRules,
    allows_forms: bool,
    silence: Duration,
    pub(super) reachability: Reachability,
    exchanges: AtomicU64,
    stop: watch::Sender<bool>,
}

impl Proxy {
    fn new(options: ProxyOptions) -> Result<Self, ProxyError> {
        let ProxyOptions { session, upstream, peers, allows_forms, limits } = options;
        let upstream = Upstream::new(upstream).map_err(ProxyError::Client)?;
        let (open, detached, early) = Default::default();
        let shared = Shared { session, open, detached, early };
        let (exchanges, (stop, _)) = (AtomicU64::new(0), watch::channel(false));
        let (silence, reachability) = (limits.silence, Reachability::default());
        Ok(Self { shared, upstream, peers, allows_forms, silence, reachability, exchanges, stop })
    }

    pub(super) fn warn(&self, message: &str) {
        self.shared.session.warn(message);
    }

    pub(super) fn stop(&self) {
        self.stop.send_replace(true);
    }

    pub(super) async fn end_abandoned_calls(&self) {
        loop {
            tokio::time::sleep(CHECK_EVERY).await;
            self.shared.detached.end_abandoned(ABANDONED_AFTER, &self.shared.session, &self.shared.open);
        }
    }

    pub(super) fn stopping(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut stop = self.stop.subscribe();
        async move {
            // The sender is dropped with the proxy.
            let _ = stop.wait_for(|stop| *stop).await;
        }
    }

    pub(super) async fn handle(&self, request: Request<Body>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        // First, before the body is read: a web page must not make the proxy store anything.
        if let Err(problem) = self.peers.check(&parts.uri, &parts.headers) {
            return answer(problem.status(), error_message(None, INVALID_REQUEST, &problem.to_string()));
        }
        if !self.allows_forms && can_come_from_a_form(&parts.headers) {
            let problem = "the body has a type that a form of any web page can send; see --allow-forms";
            return answer(StatusCode::UNSUPPORTED_MEDIA_TYPE, error_message(None, INVALID_REQUEST, problem));
        }
        // To its end: the decision depends on the whole body.
        let body = match RequestBody::read(body, MAX_INSPECT_BYTES, self.silence).await {
            Ok(body) => body,
            // A client that breaks off has gone, and reads no answer.
            Err(ReadError::ClientGone) => return answer(StatusCode::BAD_REQUEST, String::new()),
            Err(error @ ReadError::Silent(_)) => {
                let body = error_message(None, INVALID_REQUEST, &error.to_string());
                let mut response = answer(StatusCode::REQUEST_TIMEOUT, body);
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                return response;
            }
            // An incomplete body is not forwarded in any mode.
            Err(error @ ReadError::Buffer(_)) => {
                let problem = error.to_string();
                self.shared.session.report(Problem::Uninspected, &problem);
                return answer(StatusCode::INSUFFICIENT_STORAGE, error_message(None, INTERNAL_ERROR, &problem));
            }
        };
        let scope = self.scope(&parts.headers, &parts.method);
        let inspection = Inspection {
            session: &self.shared.session,
            open: &self.shared.open,
            scope: &scope,
            headers: &parts.headers,
        };
        match inspection.inspect(body) {
            RequestDecision::Answer(Answer { status, body, terminates }) => {
                if terminates {
                    self.stop();
                }
                answer(status, body)
            }
            RequestDecision::Forward(forwarded) => self.forward(parts, scope, forwarded).await,
        }
    }

    fn scope(&self, headers: &HeaderMap, method: &Method) -> Scope {
        match headers.get(SESSION_ID) {
            Some(id) => Scope::Session(String::from_utf8_lossy(id.as_bytes()).into_owned()),
            // A stream without a session, as in the revision of 2024-11-05: responses to any request may come on it.
            None if method == Method::GET => Scope::Unnamed,
            None => Scope::Exchange(self.exchanges.fetch_add(1, Ordering::Relaxed)),
        }
    }

    async fn forward(&self, parts: Parts, scope: Scope, forwarded: ForwardedRequest) -> Response<Body> {
        let ForwardedRequest { body, calls, id, answers, terminates } = forwarded;
        // From here on the exchange ends its calls, also if the client disconnects before the response.
        let mut exchange = Exchange::new(self.shared.clone(), scope.clone(), calls);
        if terminates {
            self.stop();
        }
        // A GET without a body must stay without one.
        let has_body = !body.is_empty() || parts.headers.contains_key(CONTENT_LENGTH);
        let length = has_body.then(|| body.len());
        let mut sent = parts.headers;
        request_body::to_server(&mut sent, length);
        let body = has_body.then(|| body.into_body());
        let response = match self.upstream.send(parts.method.clone(), &parts.uri, sent, body).await {
            Ok(response) => response,
            Err(error) => {
                let problem = self.upstream.failure(&error);
                exchange.fail(&problem);
                // A proxy whose server never answers would otherwise look like a run without calls.
                self.reachability.unanswered(&problem, &self.shared.session);
                let message = error_message(id.as_ref(), INTERNAL_ERROR, &problem);
                return answer(StatusCode::BAD_GATEWAY, with_refusals(&answers, message));
            }
        };
        self.reachability.answered();
        // Only a server that accepts the end of the session drops its open requests.
        if parts.method == Method::DELETE && response.status().is_success() {
            self.end_session(&scope);
        }
        if response.status() == StatusCode::NOT_FOUND && matches!(scope, Scope::Session(_)) {
            // The server does not know the session, so no stream of it can be resumed.
            self.shared.detached.end_all(&scope, &self.shared.session, &self.shared.open);
        }
        self.respond(response.into(), exchange, &answers)
    }

    fn end_session(&self, scope: &Scope) {
        if !matches!(scope, Scope::Session(_)) {
            return;
        }
        for call in self.shared.open.take_all(|(of, _)| of == scope) {
            self.shared.session.end(&call, CallResult::cancelled());
        }
    }

    fn respond(&self, response: Response<reqwest::Body>, mut exchange: Exchange, answers: &[String]) -> Response<Body> {
        let (mut head, body) = response.into_parts();
        exchange.start_response(&head);
        request_body::to_client(&mut head.headers, self.upstream.url());
        let content = if answers.is_empty() { Content::Events } else { Content::from_head(&head) };
        // The body is replaced below, so the calls end without a result.
        if content == Content::Other {
            exchange.end(ResponseEnd::Complete);
        }
        let body = ResponseBody::new(body, exchange, Box::pin(self.stopping()));
        if answers.is_empty() {
            return Response::from_parts(head, Body::new(body));
        }
        // Answers to refused calls make the body longer.
        head.headers.remove(CONTENT_LENGTH);
        let body = match content {
            Content::Events => Body::new(body.with_events(answers)),
            Content::Json => Body::new(body.with_elements(answers)),
            Content::None => {
                // The rest of the batch has no response, and the refused calls have theirs.
                head.status = StatusCode::OK;
                as_json(&mut head.headers);
                format!("[{}]", answers.join(",")).into()
            }
            Content::Other => {
                let problem = format!("the server answered with the HTTP status {} and not in JSON", head.status);
                as_json(&mut head.headers);
                with_refusals(answers, error_message(None, INTERNAL_ERROR, &problem)).into()
            }
        };
        Response::from_parts(head, body)
    }
}

fn as_json(headers: &mut HeaderMap) {
    headers.remove(CONTENT_ENCODING);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    None,
    Json,
    Events,
    Other,
}

impl Content {
    fn from_head(head: &response::Parts) -> Self {
        if matches!(head.status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT) {
            return Self::None;
        }
        match ContentType::from_headers(&head.headers) {
            _ if is_compressed(&head.headers) => Self::Other,
            ContentType::Events => Self::Events,
            ContentType::Json => Self::Json,
            ContentType::Form | ContentType::Other => Self::Other,
        }
    }
}

/// Returns the answers to refused calls of a batch together with the message about the rest of it.
fn with_refusals(answers: &[String], message: String) -> String {
    if answers.is_empty() { message } else { format!("[{},{message}]", answers.join(",")) }
}

fn answer(status: StatusCode, body: String) -> Response<Body> {
    let is_empty = body.is_empty();
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    if !is_empty {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    response
}

/// Calls that have not ended this long after the proxy was stopped are cut off.
const GRACE: Duration = Duration::from_secs(5);

pub struct ProxyOptions {
    pub session: Arc<Session>,
    pub upstream: UpstreamUrl,
    pub peers: PeerRules,
    /// Whether bodies of the types are accepted that a form of a web page can send to any host.
    pub allows_forms: bool,
    pub limits: ClientLimits,
}

#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    #[error("cannot create the HTTP client: {0}")]
    Client(#[source] reqwest::Error),
}

/// Serves until `stop` ends or a rule ends the run, and then ends the session. Open calls have a few seconds to end.
pub async fn serve(
    listener: TcpListener,
    options: ProxyOptions,
    stop: impl Future<Output = ()>,
) -> Result<(), ProxyError> {
    let (session, connections) = (options.session.clone(), Connections::new(options.limits));
    let proxy = Arc::new(Proxy::new(options)?);
    tokio::select! {
        // Ends the accepting, and closes the listener.
        () = async { tokio::select! { () = stop => {}, () = proxy.stopping() => {} } } => proxy.stop(),
        never = connections.serve(listener, &proxy) => match never {},
        () = proxy.end_abandoned_calls() => {}
    }
    // Streams on which no call waits have ended by now. A call may still be answered, but not forever.
    let _ = timeout(GRACE, connections.ended()).await;
    let reached = proxy.reachability.finish(&session);
    // A rule that ended the run is the reason that counts.
    let status = if session.termination().is_some() { RunStatus::Terminated } else { reached };
    let open = OpenCallsEnd {
        status: CallStatus::Cancelled,
        class: ErrorClass::Unknown,
        message: "the proxy was stopped before the call ended",
    };
    session.finish(status, open);
    Ok(())
}
