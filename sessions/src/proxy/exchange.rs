//! One request to a model server and its answer.
//!
//! An exchange runs in a task of its own, so that it ends with a record also if the client disconnects.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Response, StatusCode, Version};
use counterproof_guard::http::{Upstream, last_cause};
use hyper::body::{Frame, Incoming};
use jiff::Timestamp;
use serde_json::json;
use tokio::sync::{mpsc, oneshot, watch};

use super::answer_reader::{AnswerEnd, AnswerReader};
use super::headers::{SubstitutedKey, secrets_of, to_client, to_server};
use super::recorder::{AskedRequest, ParsedRequest, Recorder, RecordingRequired};
use super::request_body::{MAX_RECORDED_REQUEST, RequestBody, next_frame};
use crate::event::{Api, EventError};

/// Pieces of an answer that wait for a slow client.
const WAITING_PIECES: usize = 16;

const CLIENT_GONE: &str = "the agent closed the connection before the end of the answer";
const BUDGET_SPENT: &str = "the budget of the run has no further request to the model";
const STOPPED: &str = "the recording ended before the end of the answer";

/// What all exchanges share.
pub(super) struct Shared {
    pub(super) recorder: Arc<Recorder>,
    pub(super) key: Option<SubstitutedKey>,
    pub(super) now: fn() -> Timestamp,
    /// True once open exchanges are to end.
    pub(super) abort: watch::Receiver<bool>,
    /// Dropped at the end of the last exchange.
    pub(super) alive: mpsc::Sender<()>,
}

impl Shared {
    /// Waits until open exchanges are to end.
    async fn aborted(&self) {
        let mut abort = self.abort.clone();
        if abort.wait_for(|abort| *abort).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Passes a request on that asks no model.
pub(super) async fn pass(upstream: &Upstream, parts: Parts, body: Incoming) -> Response<Body> {
    use axum::body::HttpBody as _;

    // A GET without a body must stay without one.
    let body = (!body.is_end_stream()).then(|| reqwest::Body::wrap(body));
    match upstream.send(parts.method, &parts.uri, to_server(&parts.headers), body).await {
        Ok(answer) => {
            let (head, body) = head_and_body(answer);
            head.map(|()| Body::new(body))
        }
        Err(error) => refusal(StatusCode::BAD_GATEWAY, &upstream.failure(&error)),
    }
}

fn head_and_body(answer: reqwest::Response) -> (Response<()>, reqwest::Body) {
    let (mut head, body) = Response::<reqwest::Body>::from(answer).into_parts();
    head.headers = to_client(&head.headers);
    // The version is one of the connection.
    head.version = Version::HTTP_11;
    (Response::from_parts(head, ()), body)
}

/// An answer of the proxy itself, in the form of both providers.
pub(super) fn refusal(status: StatusCode, message: &str) -> Response<Body> {
    let body = json!({"type": "error", "error": {"type": "proxy_error", "code": null, "message": message}});
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Passes a request to a model on, and records it.
pub(super) async fn ask(
    shared: Arc<Shared>,
    upstream: Arc<Upstream>,
    api: Api,
    parts: Parts,
    body: Incoming,
) -> Response<Body> {
    let (at, started) = ((shared.now)(), Instant::now());
    // A client that breaks off within its request has asked nothing, and reads no answer.
    let Ok(body) = RequestBody::read(body, MAX_RECORDED_REQUEST).await else {
        return refusal(StatusCode::BAD_REQUEST, "the request broke off");
    };
    let request = AskedRequest { api, at, started, body: body.whole().cloned() };
    let (head, answer) = oneshot::channel();
    let exchange = Exchange { shared, upstream, request, head: Some(head) };
    tokio::spawn(exchange.run(parts, body));
    answer.await.unwrap_or_else(|_| refusal(StatusCode::BAD_GATEWAY, "the proxy failed"))
}

struct Exchange {
    shared: Arc<Shared>,
    upstream: Arc<Upstream>,
    request: AskedRequest,
    /// Where the answer goes. The receiver is dropped if the client disconnects.
    head: Option<oneshot::Sender<Response<Body>>>,
}

impl Exchange {
    async fn run(mut self, parts: Parts, body: RequestBody) {
        let _alive = self.shared.alive.clone();
        let recorder = self.shared.recorder.clone();
        if recorder.before_request(&self.request, secrets_of(&parts.headers)).await.is_err() {
            return self.answer(refusal(StatusCode::BAD_GATEWAY, &RecordingRequired.to_string()));
        }
        if !recorder.may_send().await {
            let mut refused = refusal(StatusCode::TOO_MANY_REQUESTS, BUDGET_SPENT);
            // The clients of OpenAI and Anthropic would send the request again.
            refused.headers_mut().insert("x-should-retry", HeaderValue::from_static("false"));
            return self.answer(refused);
        }
        let parsed = ParsedRequest::start(&self.request, &parts.headers);
        let sending = self.upstream.send(parts.method, &parts.uri, to_server(&parts.headers), Some(body.into_body()));
        let gone = async {
            match &mut self.head {
                Some(head) => head.closed().await,
                None => std::future::pending().await,
            }
        };
        let sent = tokio::select! {
            sent = sending => sent.map_err(|error| ("network", self.upstream.failure(&error))),
            () = gone => Err(("cut", CLIENT_GONE.to_owned())),
            () = self.shared.aborted() => Err(("cut", STOPPED.to_owned())),
        };
        match sent {
            Ok(answer) => self.respond(answer, parsed).await,
            Err((kind, message)) => {
                let error = EventError { kind: kind.to_owned(), status: None, message: message.clone() };
                let recorded = recorder.call(&self.request, parsed, move || (None, Some(error))).await;
                let message = if recorded.is_ok() { message } else { RecordingRequired.to_string() };
                self.answer(refusal(StatusCode::BAD_GATEWAY, &message));
            }
        }
    }

    /// Starts the answer. A client that has gone is noticed by the body.
    fn answer(&mut self, response: Response<Body>) {
        if let Some(head) = self.head.take() {
            let _ = head.send(response);
        }
    }

    async fn respond(mut self, answer: reqwest::Response, parsed: ParsedRequest) {
        let (head, body) = head_and_body(answer);
        let reader = AnswerReader::new(self.request.api, head.status(), head.headers());
        let (pieces, received) = mpsc::channel(WAITING_PIECES);
        self.answer(head.map(|()| Body::new(AnswerBody::new(received))));
        let mut client = Client { pieces, held_bytes: reader.held_bytes(), held: VecDeque::new() };
        let mut record = Record { exchange: &self, open: Some((reader, parsed)) };
        match self.pass_on(body, &mut client, &mut record).await {
            Ok(()) => {}
            Err(Early::ClientGone) => _ = record.add(AnswerEnd::Cut(CLIENT_GONE.to_owned())).await,
            Err(Early::Broken(reason)) => {
                if record.add(AnswerEnd::Cut(reason)).await.is_ok() {
                    _ = client.release().await;
                }
                _ = client.pieces.send(Err(BrokenAnswer)).await;
            }
            // The client must not take the answer for a whole one.
            Err(Early::NotRecorded) => _ = client.pieces.send(Err(BrokenAnswer)).await,
        }
    }

    /// Passes an answer on, and records it before its last piece.
    async fn pass_on(
        &self,
        mut body: reqwest::Body,
        client: &mut Client,
        record: &mut Record<'_>,
    ) -> Result<(), Early> {
        loop {
            let frame = tokio::select! {
                frame = next_frame(&mut body) => frame.transpose(),
                () = client.pieces.closed() => return Err(Early::ClientGone),
                () = self.shared.aborted() => return Err(Early::Broken(STOPPED.to_owned())),
            };
            let broken = |error| Early::Broken(format!("the answer broke off: {}", last_cause(&error)));
            let Some(frame) = frame.map_err(broken)? else {
                record.add(AnswerEnd::Complete).await?;
                return client.release().await;
            };
            let has_ended = frame.data_ref().is_some_and(|piece| record.push(piece));
            if has_ended {
                // Before the event that ends the answer. What comes after it does not matter.
                record.add(AnswerEnd::Complete).await?;
            }
            client.pass(frame).await?;
        }
    }
}

/// Why an answer is not passed on to its end.
enum Early {
    ClientGone,
    Broken(String),
    NotRecorded,
}

impl From<RecordingRequired> for Early {
    fn from(_: RecordingRequired) -> Self {
        Self::NotRecorded
    }
}

/// The way of an answer to the client.
struct Client {
    pieces: mpsc::Sender<Piece>,
    /// A piece leaves when this many bytes have come after it.
    held_bytes: usize,
    held: VecDeque<Frame<Bytes>>,
}

impl Client {
    async fn pass(&mut self, frame: Frame<Bytes>) -> Result<(), Early> {
        self.held.push_back(frame);
        let length = |frame: &Frame<Bytes>| frame.data_ref().map_or(0, Bytes::len);
        let mut after: usize = self.held.iter().skip(1).map(length).sum();
        while after >= self.held_bytes {
            let Some(first) = self.held.pop_front() else { break };
            self.send(first).await?;
            after -= self.held.front().map_or(0, length);
        }
        Ok(())
    }

    async fn release(&mut self) -> Result<(), Early> {
        while let Some(frame) = self.held.pop_front() {
            self.send(frame).await?;
        }
        Ok(())
    }

    async fn send(&self, frame: Frame<Bytes>) -> Result<(), Early> {
        self.pieces.send(Ok(frame)).await.map_err(|_| Early::ClientGone)
    }
}

/// The record of a call, which is added once.
struct Record<'a> {
    exchange: &'a Exchange,
    open: Option<(AnswerReader, ParsedRequest)>,
}

impl Record<'_> {
    /// Reads a piece. Returns true if the answer of a stream ends in it.
    fn push(&mut self, piece: &[u8]) -> bool {
        self.open.as_mut().is_some_and(|(reader, _)| reader.push(piece))
    }

    async fn add(&mut self, end: AnswerEnd) -> Result<(), RecordingRequired> {
        let Some((reader, parsed)) = self.open.take() else { return Ok(()) };
        let Exchange { shared, request, .. } = self.exchange;
        shared.recorder.call(request, parsed, move || reader.finish(end)).await
    }
}

/// The answer broke off. The connection to the client is closed within the body, so that the client sees it too.
#[derive(Debug, thiserror::Error)]
#[error("the answer broke off")]
struct BrokenAnswer;

type Piece = Result<Frame<Bytes>, BrokenAnswer>;

/// The body of an answer on its way to the client.
struct AnswerBody {
    pieces: mpsc::Receiver<Piece>,
    broken: Option<BrokenAnswer>,
}

impl AnswerBody {
    const fn new(pieces: mpsc::Receiver<Piece>) -> Self {
        Self { pieces, broken: None }
    }
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = BrokenAnswer;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Piece>> {
        if let Some(broken) = self.broken.take() {
            return Poll::Ready(Some(Err(broken)));
        }
        match self.pieces.poll_recv(context) {
            Poll::Ready(Some(Err(broken))) => {
                // The connection is dropped at once. It writes what it holds only if the body is pending.
                self.broken = Some(broken);
                context.waker().wake_by_ref();
                Poll::Pending
            }
            piece => piece,
        }
    }
}
