//! Forwards or refuses the messages of a client and records the ends of calls: the same for every transport.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use counterproof_artifact::Sha256Digest;
use counterproof_ledger::event::{Action, CallId, CallStatus};

use super::{
    ClientMessage, ClientMessages, RequestId, Response, ResponseKind, Revision, ScannedMessage, ToolCall,
    ToolCallProblem, refusal_message,
};
use crate::session::{Admission, CallResult, IncomingArgs, IncomingCall, Refusal, ResultBytes, Retry, Session};

pub trait MessageHandler {
    type Error;

    /// Bytes that the transport adds to an answer.
    const FRAME_BYTES: u64;

    /// Stores a forwarded call until the response to its request arrives.
    fn forwarded(&mut self, id: &RequestId, call: CallId);

    /// Removes and returns the call of a request that the client cancels.
    fn cancelled(&mut self, id: &RequestId) -> Option<CallId>;

    /// Answers a message without the server. Returns false if the message goes to the server.
    fn answers(&mut self, message: &ClientMessage<'_>) -> Result<bool, Self::Error>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToServer {
    /// The bytes as they came.
    Unchanged,
    Rest(String),
    Nothing,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// The answers, as JSON texts. A call without an id gets none.
    pub texts: Vec<String>,
    pub is_batch: bool,
    pub terminates: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub struct MessageDecisions {
    pub to_server: ToServer,
    pub answers: Answers,
}

type RefusedCall = (Box<Refusal>, Option<String>);

impl Answers {
    pub fn message(&self) -> Option<String> {
        match (&*self.texts, self.is_batch) {
            ([], _) => None,
            (texts, true) => Some(format!("[{}]", texts.join(","))),
            (texts, false) => Some(texts.concat()),
        }
    }

    /// Records refused calls and adds their answers. A call is recorded before it is answered.
    fn record(mut self, session: &Session, refused: Vec<RefusedCall>, frame_bytes: u64) -> Self {
        for (refusal, text) in refused {
            // A call is recorded before it is answered, as it is before it is forwarded.
            session.refused(&refusal, text.as_ref().map_or(0, |text| text.len() as u64 + frame_bytes));
            self.terminates |= refusal.decision.action == Action::TerminateRun;
            self.texts.extend(text);
        }
        self
    }
}

/// Decides about messages that were read as a whole, and records the refused calls.
pub fn decide_messages<H: MessageHandler>(
    session: &Session,
    messages: &ClientMessages<'_>,
    handler: &mut H,
) -> Result<MessageDecisions, H::Error> {
    let mut kept = Vec::new();
    let mut refused = Vec::new();
    for message in &messages.messages {
        match message {
            ClientMessage::Other { cancels, .. } => {
                if let Some(call) = cancels.as_ref().and_then(|id| handler.cancelled(id)) {
                    session.end(&call, CallResult::cancelled());
                }
            }
            ClientMessage::Call(call) => {
                // The size of one element: a batch is several calls.
                let bytes_in = if messages.is_batch { call.text.len() as u64 } else { messages.bytes };
                if let Some(refusal) = decide_call(session, call, bytes_in, handler) {
                    refused.push(refusal);
                    continue;
                }
            }
        }
        // After the decision: the policy also decides about calls that a cassette answers.
        if !handler.answers(message)? {
            kept.push(message.text());
        }
    }
    let to_server = match kept.len() {
        // Byte for byte, with the white space between the messages.
        kept if kept == messages.messages.len() => ToServer::Unchanged,
        0 => ToServer::Nothing,
        _ => ToServer::Rest(format!("[{}]", kept.join(","))),
    };
    let answers = Answers { is_batch: messages.is_batch, ..Answers::default() };
    Ok(MessageDecisions { to_server, answers: answers.record(session, refused, H::FRAME_BYTES) })
}

/// Decides about a message that is too large to be inspected, and records it if it is a refused call.
pub fn decide_scanned<H: MessageHandler>(
    session: &Session,
    found: &ScannedMessage,
    bytes_in: u64,
    handler: &mut H,
) -> MessageDecisions {
    let refused = if found.is_call { decide_scanned_call(session, found, bytes_in, handler) } else { None };
    let to_server = if refused.is_some() { ToServer::Nothing } else { ToServer::Unchanged };
    let answers = Answers::default().record(session, refused.into_iter().collect(), H::FRAME_BYTES);
    MessageDecisions { to_server, answers }
}

fn decide_call(
    session: &Session,
    call: &ToolCall<'_>,
    bytes_in: u64,
    handler: &mut impl MessageHandler,
) -> Option<RefusedCall> {
    let args = match &call.args {
        Ok(value) => IncomingArgs::Inspected { value, text: Cow::Borrowed(&*call.args_text) },
        // All parsers agree on the call, so it is decided. Only its arguments cannot be compared.
        Err(ToolCallProblem::Unreadable(_)) => {
            IncomingArgs::Uninspected { hash: call.args_bytes_hash, text: Some(Cow::Borrowed(&*call.args_text)) }
        }
        Err(problem) => IncomingArgs::Ambiguous { hash: call.args_bytes_hash, problem: problem.to_string() },
    };
    let retry = call.is_retry.then_some(Retry { request_state: call.request_state.as_deref() });
    let incoming = IncomingCall { tool_name: &call.tool_name, args, bytes_in, retry };
    let request = Request { id: call.id.as_ref(), revision: revision(call.is_stateless) };
    begin(session, &incoming, &request, handler)
}

fn decide_scanned_call(
    session: &Session,
    found: &ScannedMessage,
    bytes_in: u64,
    handler: &mut impl MessageHandler,
) -> Option<RefusedCall> {
    let hash = found.args_hash.unwrap_or_else(|| Sha256Digest::from_bytes(b"{}"));
    let args = match &found.problem {
        Some(problem) => IncomingArgs::Ambiguous { hash, problem: problem.to_string() },
        None => IncomingArgs::Uninspected { hash, text: None },
    };
    let retry = found.is_retry.then_some(Retry { request_state: found.request_state.as_deref() });
    let incoming = IncomingCall { tool_name: &found.tool_name, args, bytes_in, retry };
    let request = Request { id: found.id.as_ref(), revision: revision(found.is_stateless) };
    begin(session, &incoming, &request, handler)
}

struct Request<'a> {
    id: Option<&'a RequestId>,
    revision: Revision,
}

fn begin(
    session: &Session,
    incoming: &IncomingCall<'_>,
    request: &Request<'_>,
    handler: &mut impl MessageHandler,
) -> Option<RefusedCall> {
    match session.begin(incoming) {
        Admission::Forward(call) => {
            match request.id {
                Some(id) => handler.forwarded(id, call),
                // A notification has no response.
                None => session.end(&call, CallResult::without_response()),
            }
            None
        }
        Admission::Refuse(refusal) => {
            let responses = &session.policy().responses;
            let client = session.client_name();
            let answer =
                request.id.map(|id| refusal_message(&refusal, id, responses, request.revision, client.as_deref()));
            Some((refusal, answer))
        }
    }
}

const fn revision(is_stateless: bool) -> Revision {
    if is_stateless { Revision::Stateless } else { Revision::WithInitialize }
}

/// Records the ends of the calls that responses answer. `take` removes and returns the call of a request.
pub fn end_calls(session: &Session, responses: &[Response<'_>], take: impl Fn(&RequestId) -> Option<CallId>) {
    for response in responses {
        let Some(call) = take(&response.id) else { continue };
        let result = ResultBytes::Inspected(response.payload.as_bytes());
        let received = CallResponse { kind: response.kind.clone(), bytes_out: response.text.len() as u64, result };
        end_call(session, &call, received);
    }
}

/// Records the end of the call that a message answers, if no parser can read all of it: it is not UTF-8, or has a key twice.
pub fn end_unreadable_call(session: &Session, message: &[u8], take: impl Fn(&RequestId) -> Option<CallId>) {
    end_scanned_call(session, &ScannedMessage::read(message), message.len() as u64, take);
}

/// Records the end of the call that a message of `length` bytes answers, which is too large to be inspected.
pub fn end_scanned_call(
    session: &Session,
    found: &ScannedMessage,
    length: u64,
    take: impl Fn(&RequestId) -> Option<CallId>,
) {
    let (Some(id), Some(kind)) = (&found.id, &found.response) else { return };
    let Some(call) = take(id) else { return };
    let hash = found.payload_hash.unwrap_or_else(|| Sha256Digest::from_bytes(b""));
    let result = ResultBytes::TooLarge { hash };
    end_call(session, &call, CallResponse { kind: kind.clone(), bytes_out: length, result });
}

struct CallResponse<'a> {
    kind: ResponseKind,
    bytes_out: u64,
    result: ResultBytes<'a>,
}

/// Records the end of a call, or that its server waits for input of the client.
fn end_call(session: &Session, call: &CallId, received: CallResponse<'_>) {
    let CallResponse { kind, bytes_out, result } = received;
    let (status, error) = match kind {
        ResponseKind::InputRequired { request_state } => return session.wait_for_input(call, request_state),
        ResponseKind::Result => (CallStatus::Ok, None),
        ResponseKind::Failed { status, error } => (status, Some(error)),
    };
    session.end(call, CallResult { status, error, bytes_out, result });
}

/// The requests that wait for a response. The key of a transport is at least the id of the request.
#[derive(Debug)]
pub struct PendingCalls<K = RequestId> {
    /// A client must not use an id twice at the same time. If it does, the first response belongs to the first request.
    requests: Mutex<HashMap<K, VecDeque<Option<CallId>>>>,
}

impl<K> Default for PendingCalls<K> {
    fn default() -> Self {
        Self { requests: Mutex::default() }
    }
}

impl<K: Eq + Hash> PendingCalls<K> {
    pub fn insert(&self, key: K, call: CallId) {
        self.requests().entry(key).or_default().push_back(Some(call));
    }

    pub fn insert_other(&self, key: K) {
        self.requests().entry(key).or_default().push_back(None);
    }

    /// Removes the request that a response or a cancellation names. Returns its call, if it is one.
    pub fn take(&self, key: &K) -> Option<CallId> {
        let mut requests = self.requests();
        let queue = requests.get_mut(key)?;
        // The first response belongs to the first request, should a client use an id twice.
        let call = queue.pop_front();
        if queue.is_empty() {
            requests.remove(key);
        }
        call.flatten()
    }

    pub fn take_all(&self, is_selected: impl Fn(&K) -> bool) -> Vec<CallId> {
        self.requests().extract_if(|key, _| is_selected(key)).flat_map(|(_, queue)| queue).flatten().collect()
    }

    pub fn remove(&self, key: &K, call: &CallId) -> bool {
        let mut requests = self.requests();
        let Some(queue) = requests.get_mut(key) else { return false };
        let before = queue.len();
        queue.retain(|waiting| waiting.as_ref() != Some(call));
        let is_removed = queue.len() < before;
        if queue.is_empty() {
            requests.remove(key);
        }
        is_removed
    }

    pub fn is_waiting(&self, key: &K, call: &CallId) -> bool {
        self.requests().get(key).is_some_and(|queue| queue.iter().flatten().any(|waiting| waiting == call))
    }

    pub fn contains(&self, key: &K) -> bool {
        self.requests().contains_key(key)
    }

    pub fn calls_where(&self, is_selected: impl Fn(&K) -> bool) -> Vec<CallId> {
        let requests = self.requests();
        let selected = requests.iter().filter(|(key, _)| is_selected(key));
        selected.flat_map(|(_, queue)| queue.iter().flatten().cloned()).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.requests().is_empty()
    }

    /// Removes all requests, and returns each with its call, if it is one.
    pub fn take_requests(&self) -> Vec<(K, Option<CallId>)>
    where
        K: Clone,
    {
        let requests = std::mem::take(&mut *self.requests());
        let requests =
            requests.into_iter().flat_map(|(key, queue)| queue.into_iter().map(move |call| (key.clone(), call)));
        requests.collect()
    }

    fn requests(&self) -> MutexGuard<'_, HashMap<K, VecDeque<Option<CallId>>>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
