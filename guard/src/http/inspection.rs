//! From the client to the server: decides about the calls in a request.

use std::convert::Infallible;

use axum::http::{HeaderMap, StatusCode};
use counterproof_ledger::event::CallId;

use super::content_type::{ContentType, is_compressed};
use super::mirrored_headers::{HEADER_MISMATCH, contradiction};
use super::open_requests::{OpenRequests, Scope};
use super::request_body::RequestBody;
use crate::mcp::{
    Answers, ClientMessage, Decided, MessageHandler, RequestId, Scanner, ToServer, decide_messages, decide_scanned,
    error_message, read_client_messages, uninspected_message,
};
use crate::session::{Problem, Session};

/// Decides about the calls of one request.
pub(super) struct Inspection<'a> {
    pub(super) session: &'a Session,
    pub(super) open: &'a OpenRequests,
    pub(super) scope: &'a Scope,
    pub(super) headers: &'a HeaderMap,
}

/// What happens to a request.
#[derive(Debug)]
pub(super) enum Inspected {
    /// It is sent to the server.
    Forward(Forwarded),
    /// It is answered by the proxy.
    Answer(Answer),
}

/// A request for the server.
#[derive(Debug)]
pub(super) struct Forwarded {
    pub(super) body: RequestBody,
    pub(super) calls: Vec<(RequestId, CallId)>,
    /// The id of the only message, for an error of the proxy.
    pub(super) id: Option<RequestId>,
    /// Answers to refused calls of the same batch. They are added to the response.
    pub(super) answers: Vec<String>,
    /// True if a rule ended the run.
    pub(super) terminates: bool,
}

/// An answer of the proxy.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    /// JSON text. Empty if no message has an id.
    pub(super) body: String,
    /// True if a rule ended the run.
    pub(super) terminates: bool,
}

/// The calls of one request that are forwarded.
struct Calls<'a> {
    open: &'a OpenRequests,
    scope: &'a Scope,
    forwarded: Vec<(RequestId, CallId)>,
}

impl MessageHandler for Calls<'_> {
    type Error = Infallible;

    const FRAME_BYTES: u64 = 0;

    fn forwarded(&mut self, id: &RequestId, call: CallId) {
        self.open.insert((self.scope.clone(), id.clone()), call.clone());
        self.forwarded.push((id.clone(), call));
    }

    fn cancelled(&mut self, id: &RequestId) -> Option<CallId> {
        let of = |scope: &Scope| self.open.take(&(scope.clone(), id.clone()));
        of(self.scope).or_else(|| of(&Scope::Unnamed))
    }

    fn answers(&mut self, _message: &ClientMessage<'_>) -> Result<bool, Infallible> {
        Ok(false)
    }
}

impl Inspection<'_> {
    /// Decides about a request. Forwarded calls are open from now on.
    pub(super) fn inspect(&self, body: RequestBody) -> Inspected {
        if body.is_empty() {
            return forward(body);
        }
        if is_compressed(self.headers) {
            return self.uninspected(body, "the body is compressed");
        }
        match body {
            RequestBody::Small(bytes) => self.small(bytes),
            body @ RequestBody::Large(_) => self.large(body),
        }
    }

    fn small(&self, bytes: Vec<u8>) -> Inspected {
        let messages = match read_client_messages(&bytes) {
            Ok(messages) => messages,
            Err(_) if self.is_form(&bytes) => return forward(RequestBody::Small(bytes)),
            Err(problem) => return self.uninspected(RequestBody::Small(bytes), &problem.to_string()),
        };
        if let Some(answer) = self.mirrored(&messages.messages) {
            return Inspected::Answer(answer);
        }
        let mut calls = self.calls();
        let Ok(decided) = decide_messages(self.session, &messages, &mut calls);
        let id = messages.messages.first().filter(|_| !messages.is_batch).and_then(request_id).cloned();
        decided_request(RequestBody::Small(bytes), decided, calls.forwarded, id)
    }

    /// Decides about a body that is larger than the limit of the inspection.
    fn large(&self, body: RequestBody) -> Inspected {
        let mut scanner = Scanner::default();
        if let Err(error) = body.read_pieces(|piece| scanner.push(piece)) {
            return self.uninspected(body, &format!("the body cannot be read back from its temporary file: {error}"));
        }
        let found = scanner.finish();
        if let Some(problem) = found.unreadable() {
            return self.uninspected(body, &problem);
        }
        if let Some(answer) = self.contradicted(found.is_call.then_some(&*found.tool_name), found.id.as_ref()) {
            return Inspected::Answer(answer);
        }
        let mut calls = self.calls();
        let decided = decide_scanned(self.session, &found, body.len(), &mut calls);
        decided_request(body, decided, calls.forwarded, found.id)
    }

    const fn calls(&self) -> Calls<'_> {
        Calls { open: self.open, scope: self.scope, forwarded: Vec::new() }
    }

    /// Checks the headers that repeat parts of the body. Returns the answer to a request that contradicts itself.
    fn mirrored(&self, messages: &[ClientMessage<'_>]) -> Option<Answer> {
        messages.iter().find_map(|message| {
            let tool = match message {
                ClientMessage::Call(call) => Some(&*call.tool_name),
                ClientMessage::Other { .. } => None,
            };
            self.contradicted(tool, request_id(message))
        })
    }

    fn contradicted(&self, tool: Option<&str>, id: Option<&RequestId>) -> Option<Answer> {
        let problem = contradiction(self.headers, tool)?;
        self.session.report(Problem::Uninspected, problem);
        self.session.fails_closed().then(|| Answer {
            status: StatusCode::BAD_REQUEST,
            body: error_message(id, HEADER_MISMATCH, problem),
            terminates: false,
        })
    }

    /// Handles a body that cannot be inspected.
    fn uninspected(&self, body: RequestBody, problem: &str) -> Inspected {
        self.session.report(Problem::Uninspected, problem);
        if !self.session.fails_closed() {
            return forward(body);
        }
        Inspected::Answer(Answer {
            status: StatusCode::BAD_REQUEST,
            body: uninspected_message(problem),
            terminates: false,
        })
    }

    /// True for the forms of OAuth, which are not JSON and cannot be taken for messages.
    fn is_form(&self, bytes: &[u8]) -> bool {
        let is_form = ContentType::from_headers(self.headers) == ContentType::Form;
        is_form && bytes.first().is_some_and(u8::is_ascii_lowercase) && bytes.is_ascii()
    }
}

impl Answer {
    fn new(answers: &Answers) -> Self {
        let body = answers.message().unwrap_or_default();
        // A message without an id is accepted, as a notification is.
        let status = if body.is_empty() { StatusCode::ACCEPTED } else { StatusCode::OK };
        Self { status, body, terminates: answers.terminates }
    }
}

fn forward(body: RequestBody) -> Inspected {
    Inspected::Forward(Forwarded { body, calls: Vec::new(), id: None, answers: Vec::new(), terminates: false })
}

/// Turns decisions into a request to the server or an answer.
fn decided_request(
    body: RequestBody,
    decided: Decided,
    calls: Vec<(RequestId, CallId)>,
    id: Option<RequestId>,
) -> Inspected {
    let Decided { to_server, answers } = decided;
    let body = match to_server {
        ToServer::Unchanged => body,
        ToServer::Rest(rest) => RequestBody::Small(rest.into_bytes()),
        ToServer::Nothing => return Inspected::Answer(Answer::new(&answers)),
    };
    Inspected::Forward(Forwarded { body, calls, id, answers: answers.texts, terminates: answers.terminates })
}

/// Returns the id of a request. A response has only the id of its request.
fn request_id<'a>(message: &'a ClientMessage<'_>) -> Option<&'a RequestId> {
    message.id().filter(|_| message.method().is_some())
}
