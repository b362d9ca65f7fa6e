//! From the client to the server: decides about the calls in a request.

use std::borrow::Cow;

use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use counterproof_artifact::Sha256Digest;
use counterproof_ledger::event::{Action, CallId, CallStatus};

use super::mirrored_headers::{HEADER_MISMATCH, contradiction};
use super::open_requests::{OpenRequests, Scope};
use super::request_body::RequestBody;
use crate::mcp::{
    ClientMessage, RequestId, Revision, ScannedMessage, Scanner, ToolCall, read_client_message, refusal_message,
};
use crate::session::{CallResult, IncomingArgs, IncomingCall, Problem, Refusal, ResultBytes, Retry, Session, Verdict};

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
    /// The calls in it.
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

/// The decisions about the messages of one request.
#[derive(Default)]
struct Decisions<'t> {
    kept: Vec<&'t str>,
    calls: Vec<(RequestId, CallId)>,
    refusals: Vec<(Box<Refusal>, Option<String>)>,
}

impl Inspection<'_> {
    /// Decides about a request. Forwarded calls are open from now on.
    pub(super) fn inspect(&self, body: RequestBody) -> Inspected {
        if body.is_empty() {
            return forward(body);
        }
        if self.headers.get_all(CONTENT_ENCODING).iter().any(|encoding| encoding.as_bytes() != b"identity") {
            return self.uninspected(body, "the body is compressed");
        }
        match body {
            RequestBody::Small(bytes) => self.small(bytes),
            body @ RequestBody::Large(_) => self.large(body),
        }
    }

    fn small(&self, bytes: Vec<u8>) -> Inspected {
        let messages = match std::str::from_utf8(&bytes) {
            Ok(text) => read_client_message(text).map_err(|error| error.to_string()),
            Err(_) => Err("the body is not UTF-8".to_owned()),
        };
        let messages = match messages {
            Ok(messages) => messages,
            Err(_) if self.is_form(&bytes) => return forward(RequestBody::Small(bytes)),
            Err(problem) => return self.uninspected(RequestBody::Small(bytes), &problem),
        };
        if let Some(answer) = self.mirrored(&messages) {
            return Inspected::Answer(answer);
        }
        let is_batch = bytes.trim_ascii_start().starts_with(b"[");
        let mut decisions = Decisions::default();
        for message in &messages {
            match message {
                ClientMessage::Other { text, cancels, .. } => {
                    if let Some(id) = cancels {
                        self.cancel(id);
                    }
                    decisions.kept.push(text);
                }
                ClientMessage::Call(call) => {
                    let size = if is_batch { call.text.len() } else { bytes.len() };
                    self.call(call, size as u64, &mut decisions);
                }
            }
        }
        let id = messages.first().filter(|_| !is_batch).and_then(message_id).cloned();
        let Decisions { kept, calls, refusals } = decisions;
        let rest = is_batch.then(|| format!("[{}]", kept.join(",")).into_bytes());
        let is_forwarded = !kept.is_empty();
        drop(messages);
        if refusals.is_empty() {
            return Inspected::Forward(Forwarded { calls, id, ..plain(RequestBody::Small(bytes)) });
        }
        let (answers, terminates) = self.refuse(refusals);
        if !is_forwarded {
            return Inspected::Answer(Answer::new(&answers, is_batch, terminates));
        }
        let body = RequestBody::Small(rest.unwrap_or(bytes));
        Inspected::Forward(Forwarded { calls, id, answers, terminates, ..plain(body) })
    }

    /// Decides about a body that is larger than the limit of the inspection.
    fn large(&self, body: RequestBody) -> Inspected {
        let mut scanner = Scanner::default();
        if let Err(error) = body.read_pieces(|piece| scanner.push(piece)) {
            return self.uninspected(body, &format!("the body cannot be read back from its temporary file: {error}"));
        }
        let found = scanner.finish();
        if !found.is_object {
            return self.uninspected(body, "the body is larger than the guard inspects, and is no JSON object");
        }
        let is_call = found.method.as_deref() == Some("tools/call") || found.problem.is_some();
        if let Some(answer) = self.contradicted(is_call.then_some(&*found.tool_name), found.id.as_ref()) {
            return Inspected::Answer(answer);
        }
        if !is_call {
            return Inspected::Forward(Forwarded { id: found.id, ..plain(body) });
        }
        let mut decisions = Decisions::default();
        self.large_call(&found, body.len(), &mut decisions);
        if decisions.refusals.is_empty() {
            return Inspected::Forward(Forwarded { calls: decisions.calls, id: found.id, ..plain(body) });
        }
        let (answers, terminates) = self.refuse(decisions.refusals);
        Inspected::Answer(Answer::new(&answers, false, terminates))
    }

    fn large_call(&self, found: &ScannedMessage, bytes_in: u64, decisions: &mut Decisions<'_>) {
        let hash = found.args_hash.unwrap_or_else(|| Sha256Digest::from_bytes(b"{}"));
        let args = match &found.problem {
            Some(problem) => IncomingArgs::Ambiguous { hash, problem: problem.to_string() },
            None => IncomingArgs::TooLarge { hash },
        };
        let retry = found.is_retry.then_some(Retry { request_state: found.request_state.as_deref() });
        let incoming = IncomingCall { tool_name: &found.tool_name, args, bytes_in, timeout_ms: None, retry };
        self.begin(&incoming, found.id.as_ref(), revision(found.is_stateless), decisions);
    }

    fn call<'t>(&self, call: &ToolCall<'t>, bytes_in: u64, decisions: &mut Decisions<'t>) {
        let args = match &call.args {
            Ok(value) => IncomingArgs::Inspected { value, text: Cow::Borrowed(&*call.args_text) },
            Err(problem) => IncomingArgs::Ambiguous { hash: call.raw_hash(), problem: problem.to_string() },
        };
        let retry = call.is_retry.then_some(Retry { request_state: call.request_state.as_deref() });
        let incoming = IncomingCall { tool_name: &call.tool_name, args, bytes_in, timeout_ms: None, retry };
        if self.begin(&incoming, call.id.as_ref(), revision(call.is_stateless), decisions) {
            decisions.kept.push(call.text);
        }
    }

    /// Decides about a call. Returns true if it is forwarded.
    fn begin(
        &self,
        incoming: &IncomingCall<'_>,
        id: Option<&RequestId>,
        revision: Revision,
        decisions: &mut Decisions<'_>,
    ) -> bool {
        match self.session.begin(incoming) {
            Verdict::Forward(call) => {
                if let Some(id) = id {
                    self.open.insert(self.scope.clone(), id.clone(), call.clone());
                    decisions.calls.push((id.clone(), call));
                }
                true
            }
            Verdict::Refuse(refusal) => {
                // A message without an id gets no answer.
                let responses = self.session.policy().responses();
                let answer = id.map(|id| refusal_message(&refusal, id, responses, revision));
                decisions.refusals.push((refusal, answer));
                false
            }
        }
    }

    /// Records refusals. A call is recorded before it is answered. Returns the answers, and whether a rule ended the run.
    fn refuse(&self, refusals: Vec<(Box<Refusal>, Option<String>)>) -> (Vec<String>, bool) {
        let mut answers = Vec::new();
        let mut terminates = false;
        for (refusal, answer) in refusals {
            self.session.refused(&refusal, answer.as_ref().map_or(0, |answer| answer.len() as u64));
            terminates |= refusal.decision.action == Action::TerminateRun;
            answers.extend(answer);
        }
        (answers, terminates)
    }

    fn cancel(&self, id: &RequestId) {
        let call = self.open.take(self.scope, id).or_else(|| self.open.take(&Scope::Unnamed, id));
        if let Some(call) = call {
            let result =
                CallResult { status: CallStatus::Cancelled, error: None, bytes_out: 0, result: ResultBytes::None };
            self.session.end(&call, result);
        }
    }

    /// Checks the headers that repeat parts of the body. Returns the answer to a request that contradicts itself.
    fn mirrored(&self, messages: &[ClientMessage<'_>]) -> Option<Answer> {
        messages.iter().find_map(|message| {
            let tool = match message {
                ClientMessage::Call(call) => Some(&*call.tool_name),
                ClientMessage::Other { .. } => None,
            };
            self.contradicted(tool, message_id(message))
        })
    }

    fn contradicted(&self, tool: Option<&str>, id: Option<&RequestId>) -> Option<Answer> {
        let problem = contradiction(self.headers, tool)?;
        self.session.report(Problem::Uninspected, problem);
        self.session.fails_closed().then(|| Answer {
            status: StatusCode::BAD_REQUEST,
            body: json_rpc_error(id, HEADER_MISMATCH, problem),
            terminates: false,
        })
    }

    /// Handles a body that cannot be inspected.
    fn uninspected(&self, body: RequestBody, problem: &str) -> Inspected {
        self.session.report(Problem::Uninspected, problem);
        if !self.session.fails_closed() {
            return forward(body);
        }
        let problem = format!("the guard cannot inspect the message, and the policy refuses such messages: {problem}");
        Inspected::Answer(Answer {
            status: StatusCode::BAD_REQUEST,
            body: json_rpc_error(None, -32700, &problem),
            terminates: false,
        })
    }

    /// True for the forms of OAuth, which no reader of JSON takes for a message.
    fn is_form(&self, bytes: &[u8]) -> bool {
        let content_type = self.headers.get(CONTENT_TYPE).map_or(b"".as_slice(), |value| value.as_bytes());
        let is_form = content_type.to_ascii_lowercase().starts_with(b"application/x-www-form-urlencoded");
        is_form && bytes.first().is_some_and(u8::is_ascii_lowercase) && bytes.is_ascii()
    }
}

impl Answer {
    fn new(answers: &[String], is_batch: bool, terminates: bool) -> Self {
        let body = match answers {
            [] => String::new(),
            answers if is_batch => format!("[{}]", answers.join(",")),
            answers => answers.concat(),
        };
        // A message without an id is accepted, as a notification is.
        let status = if body.is_empty() { StatusCode::ACCEPTED } else { StatusCode::OK };
        Self { status, body, terminates }
    }
}

/// Formats a JSON-RPC error of the proxy.
pub(super) fn json_rpc_error(id: Option<&RequestId>, code: i64, message: &str) -> String {
    let message = serde_json::Value::from(message);
    let id = id.map_or("null", RequestId::as_json);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{message}}}}}"#)
}

fn forward(body: RequestBody) -> Inspected {
    Inspected::Forward(plain(body))
}

fn plain(body: RequestBody) -> Forwarded {
    Forwarded { body, calls: Vec::new(), id: None, answers: Vec::new(), terminates: false }
}

fn message_id<'a>(message: &'a ClientMessage<'_>) -> Option<&'a RequestId> {
    match message {
        ClientMessage::Other { id, method, .. } => id.as_ref().filter(|_| method.is_some()),
        ClientMessage::Call(call) => call.id.as_ref(),
    }
}

const fn revision(is_stateless: bool) -> Revision {
    if is_stateless { Revision::Stateless } else { Revision::WithInitialize }
}
