//! One request: checked, decided, forwarded, answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use tokio::sync::watch;

use super::exchange::{Exchange, ResponseEnd};
use super::inspection::{Answer, Forwarded, Inspected, Inspection};
use super::open_requests::{OpenRequests, Scope};
use super::request_body::RequestBody;
use super::response_body::ResponseBody;
use super::upstream::{self, Upstream};
use super::{PeerRules, headers};
use crate::mcp::error_message;
use crate::session::{CallResult, MAX_INSPECT_BYTES, Session};

/// The header that names a session of the protocol.
const SESSION_ID: &str = "mcp-session-id";

/// The JSON-RPC error code for a failure of the proxy or the server.
const INTERNAL_ERROR: i64 = -32603;

const INVALID_REQUEST: i64 = -32600;

/// Forwards requests to one server.
pub(super) struct Proxy {
    pub(super) session: Arc<Session>,
    pub(super) upstream: Upstream,
    pub(super) peers: PeerRules,
    open: Arc<OpenRequests>,
    exchanges: AtomicU64,
    /// True when the proxy must stop.
    stop: watch::Sender<bool>,
}

impl Proxy {
    pub(super) fn new(session: Arc<Session>, upstream: Upstream, peers: PeerRules) -> Self {
        let (stop, _) = watch::channel(false);
        Self { session, upstream, peers, open: Arc::default(), exchanges: AtomicU64::new(0), stop }
    }

    /// Makes the proxy stop: streams on which no call waits end.
    pub(super) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Waits until the proxy must stop.
    pub(super) fn stopping(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut stop = self.stop.subscribe();
        async move {
            // The sender is dropped with the proxy.
            let _ = stop.wait_for(|stop| *stop).await;
        }
    }

    /// Answers a request.
    pub(super) async fn handle(&self, request: Request<Body>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        if let Err(problem) = self.peers.check(&parts.uri, &parts.headers) {
            let body = error_message(None, INVALID_REQUEST, &problem.to_string());
            return answer(StatusCode::FORBIDDEN, body);
        }
        // A client that breaks off has gone, and reads no answer.
        let Ok(body) = RequestBody::read(body, MAX_INSPECT_BYTES).await else {
            return answer(StatusCode::BAD_REQUEST, String::new());
        };
        let scope = self.scope(&parts.headers, &parts.method);
        let inspection =
            Inspection { session: &self.session, open: &self.open, scope: &scope, headers: &parts.headers };
        match inspection.inspect(body) {
            Inspected::Answer(Answer { status, body, terminates }) => {
                if terminates {
                    self.stop();
                }
                answer(status, body)
            }
            Inspected::Forward(forwarded) => self.forward(parts, scope, forwarded).await,
        }
    }

    fn scope(&self, headers: &HeaderMap, method: &Method) -> Scope {
        match headers.get(SESSION_ID) {
            Some(id) => Scope::Session(String::from_utf8_lossy(id.as_bytes()).into_owned()),
            None if method == Method::GET => Scope::Unnamed,
            None => Scope::Exchange(self.exchanges.fetch_add(1, Ordering::Relaxed)),
        }
    }

    async fn forward(&self, parts: Parts, scope: Scope, forwarded: Forwarded) -> Response<Body> {
        let Forwarded { body, calls, id, answers, terminates } = forwarded;
        // From here on the exchange ends its calls, also if the client disconnects before the response.
        let mut exchange = Exchange::new(self.session.clone(), self.open.clone(), scope.clone(), calls);
        if terminates {
            self.stop();
        }
        let has_body = !body.is_empty() || parts.headers.contains_key(axum::http::header::CONTENT_LENGTH);
        let length = has_body.then(|| body.len());
        let mut sent = parts.headers;
        headers::to_server(&mut sent, length);
        let body = has_body.then(|| body.into_body());
        let response = match self.upstream.send(parts.method.clone(), &parts.uri, sent, body).await {
            Ok(response) => response,
            Err(error) => {
                exchange.end(ResponseEnd::Broken);
                let problem = upstream::failure(&error);
                return answer(StatusCode::BAD_GATEWAY, error_message(id.as_ref(), INTERNAL_ERROR, problem));
            }
        };
        if parts.method == Method::DELETE && response.status().is_success() {
            self.end_session(&scope);
        }
        self.respond(response.into(), exchange, &answers)
    }

    /// Ends the calls of a session that the client has closed.
    fn end_session(&self, scope: &Scope) {
        if !matches!(scope, Scope::Session(_)) {
            return;
        }
        for call in self.open.take_all(|(of, _)| of == scope) {
            self.session.end(&call, CallResult::cancelled());
        }
    }

    fn respond(&self, response: Response<reqwest::Body>, mut exchange: Exchange, answers: &[String]) -> Response<Body> {
        let (mut head, body) = response.into_parts();
        exchange.start_response(&head);
        headers::to_client(&mut head.headers);
        let body = ResponseBody::new(body, exchange, Box::pin(self.stopping()));
        if answers.is_empty() {
            return Response::from_parts(head, Body::new(body));
        }
        let is_events =
            head.headers.get(CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream"));
        if head.status == StatusCode::ACCEPTED {
            // The rest of the batch has no response, and the refused calls have theirs.
            return answer(StatusCode::OK, format!("[{}]", answers.join(",")));
        }
        head.headers.remove(axum::http::header::CONTENT_LENGTH);
        let body = if is_events { body.with_events(answers) } else { body.with_elements(answers) };
        Response::from_parts(head, Body::new(body))
    }
}

/// An answer of the proxy in JSON.
fn answer(status: StatusCode, body: String) -> Response<Body> {
    let is_empty = body.is_empty();
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    if !is_empty {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    response
}
