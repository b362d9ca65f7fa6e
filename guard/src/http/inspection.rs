//! Decides about the calls in a request, by its body and by the headers that repeat parts of it.

use std::convert::Infallible;

use axum::http::{HeaderMap, HeaderName, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use counterproof_ledger::event::CallId;

use super::messages::{OpenRequests, Scope};
use super::request_body::{ContentType, RequestBody, is_compressed};
use crate::mcp::{
    Answers, ClientMessage, MessageDecisions, MessageHandler, RequestId, Scanner, TOOLS_CALL, ToServer,
    decide_messages, decide_scanned, error_message, read_client_messages, uninspected_message,
};
use crate::session::{Problem, Session};

pub(super) struct Inspection<'a> {
    pub(super) session: &'a Session,
    pub(super) open: &'a OpenRequests,
    pub(super) scope: &'a Scope,
    pub(super) headers: &'a HeaderMap,
}

#[derive(Debug)]
pub(super) enum RequestDecision {
    Forward(ForwardedRequest),
    Answer(Answer),
}

#[derive(Debug)]
pub(super) struct ForwardedRequest {
    pub(super) body: RequestBody,
    pub(super) calls: Vec<(RequestId, CallId)>,
    /// The id of the only message, for an error of the proxy.
    pub(super) id: Option<RequestId>,
    /// Answers to refused calls of the same batch. They are added to the response.
    pub(super) answers: Vec<String>,
    pub(super) terminates: bool,
}

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    /// JSON text. Empty if no message has an id.
    pub(super) body: String,
    pub(super) terminates: bool,
}

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
        // A response without a session may come on another stream, where the call waits under another key.
        let of = |scope: &Scope| self.open.take(&(scope.clone(), id.clone()));
        of(self.scope).or_else(|| of(&Scope::Unnamed))
    }

    fn answers(&mut self, _message: &ClientMessage<'_>) -> Result<bool, Infallible> {
        Ok(false)
    }
}

impl Inspection<'_> {
    /// Decides about a request. Forwarded calls are open from now on.
    pub(super) fn inspect(&self, body: RequestBody) -> RequestDecision {
        if body.is_empty() {
            return forward(body);
        }
        // Not decompressed: a small body could become any size, and the server might decode it differently.
        if is_compressed(self.headers) {
            return self.uninspected(body, "the body is compressed");
        }
        match body {
            RequestBody::Small(bytes) => self.small(bytes),
            body @ RequestBody::Large(_) => self.large(body),
        }
    }

    fn small(&self, bytes: Vec<u8>) -> RequestDecision {
        let messages = match read_client_messages(&bytes) {
            Ok(messages) => messages,
            Err(_) if self.is_form(&bytes) => return forward(RequestBody::Small(bytes)),
            Err(problem) => return self.uninspected(RequestBody::Small(bytes), &problem.to_string()),
        };
        // Before the decision: a server that acts by the headers would run another call than the decided one.
        if let Some(answer) = self.mirrored(&messages.messages) {
            return RequestDecision::Answer(answer);
        }
        let mut calls = self.calls();
        let Ok(decided) = decide_messages(self.session, &messages, &mut calls);
        let id = messages.messages.first().filter(|_| !messages.is_batch).and_then(request_id).cloned();
        decided_request(RequestBody::Small(bytes), decided, calls.forwarded, id)
    }

    fn large(&self, body: RequestBody) -> RequestDecision {
        let mut scanner = Scanner::default();
        if let Err(error) = body.read_pieces(|piece| scanner.push(piece)) {
            return self.uninspected(body, &format!("the body cannot be read back from its temporary file: {error}"));
        }
        let found = scanner.finish();
        if let Some(problem) = found.unreadable() {
            return self.uninspected(body, &problem);
        }
        if let Some(answer) = self.contradicted(found.is_call.then_some(&*found.tool_name), found.id.as_ref()) {
            return RequestDecision::Answer(answer);
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

    fn uninspected(&self, body: RequestBody, problem: &str) -> RequestDecision {
        self.session.report(Problem::Uninspected, problem);
        if !self.session.fails_closed() {
            return forward(body);
        }
        RequestDecision::Answer(Answer {
            status: StatusCode::BAD_REQUEST,
            body: uninspected_message(problem),
            terminates: false,
        })
    }

    /// True for the forms of OAuth, which are not JSON and cannot be taken for messages.
    fn is_form(&self, bytes: &[u8]) -> bool {
        // By the type and by the content: with a wrong type alone, a message could pass unseen.
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

fn forward(body: RequestBody) -> RequestDecision {
    RequestDecision::Forward(ForwardedRequest {
        body,
        calls: Vec::new(),
        id: None,
        answers: Vec::new(),
        terminates: false,
    })
}

fn decided_request(
    body: RequestBody,
    decided: MessageDecisions,
    calls: Vec<(RequestId, CallId)>,
    id: Option<RequestId>,
) -> RequestDecision {
    let MessageDecisions { to_server, answers } = decided;
    let body = match to_server {
        ToServer::Unchanged => body,
        ToServer::Rest(rest) => RequestBody::Small(rest.into_bytes()),
        ToServer::Nothing => return RequestDecision::Answer(Answer::new(&answers)),
    };
    RequestDecision::Forward(ForwardedRequest {
        body,
        calls,
        id,
        answers: answers.texts,
        terminates: answers.terminates,
    })
}

fn request_id<'a>(message: &'a ClientMessage<'_>) -> Option<&'a RequestId> {
    // A response has only the id of its request.
    message.id().filter(|_| message.method().is_some())
}

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The JSON-RPC error code for headers that contradict the body.
pub(super) const HEADER_MISMATCH: i64 = -32020;

/// Checks the headers of a tool call. `tool` is its name, and none for another request. Missing headers are left to the server.
pub(super) fn contradiction(headers: &HeaderMap, tool: Option<&str>) -> Option<&'static str> {
    // All values of a header that is repeated: the server may use any of them.
    let methods: Vec<_> = headers.get_all(METHOD).iter().map(|value| value.as_bytes().trim_ascii()).collect();
    let names: Vec<_> = headers.get_all(NAME).iter().map(|value| decoded(value.as_bytes())).collect();
    let says_call = methods.iter().any(|method| *method == TOOLS_CALL.as_bytes());
    let Some(tool) = tool else {
        return says_call.then_some("the header Mcp-Method names a tool call, and the body is another message");
    };
    if methods.iter().any(|method| *method != TOOLS_CALL.as_bytes()) {
        return Some("the header Mcp-Method is not the method of the body");
    }
    let is_other = names.iter().any(|name| name.as_deref() != Some(tool.as_bytes()));
    is_other.then_some("the header Mcp-Name is not the name of the tool in the body")
}

/// Decodes a value that is in base64 between `=?base64?` and `?=`, as values outside of visible ASCII are.
fn decoded(value: &[u8]) -> Option<Vec<u8>> {
    let value = value.trim_ascii();
    let is_encoded = value.get(..9).is_some_and(|start| start.eq_ignore_ascii_case(b"=?base64?"));
    match value.strip_suffix(b"?=") {
        Some(start) if is_encoded => STANDARD.decode(start.get(9..)?).ok(),
        _ => Some(value.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn check(pairs: &[(&'static str, &'static str)], tool: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        contradiction(&headers, tool).is_none()
    }

    #[test]
    fn headers_that_repeat_the_call_are_accepted() {
        assert!(check(&[], Some("push")));
        assert!(check(&[("mcp-method", "tools/call"), ("mcp-name", " push ")], Some("push")));
        assert!(check(&[("mcp-name", "=?base64?cMO8c2g=?=")], Some("püsh")));
        assert!(check(&[("mcp-method", "ping")], None));
    }

    #[test]
    fn headers_that_name_another_call_are_detected() {
        assert!(!check(&[("mcp-name", "delete")], Some("push")));
        assert!(!check(&[("mcp-name", "push"), ("mcp-name", "delete")], Some("push")));
        assert!(!check(&[("mcp-name", "=?base64?ZGVsZXRl?=")], Some("push")));
        assert!(!check(&[("mcp-name", "=?base64?!?=")], Some("push")));
        assert!(!check(&[("mcp-method", "ping")], Some("push")));
        assert!(!check(&[("mcp-method", "tools/call")], None));
    }
}
