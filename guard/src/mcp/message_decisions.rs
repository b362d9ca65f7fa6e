//! Decides about the messages of a client: the same for every transport.

use std::borrow::Cow;

use counterproof_artifact::Sha256Digest;
use counterproof_ledger::event::{Action, CallId};

use super::{
    ClientMessage, ClientMessages, RequestId, Revision, ScannedMessage, ToolCall, ToolCallProblem, refusal_message,
};
use crate::session::{CallResult, IncomingArgs, IncomingCall, Refusal, Retry, Session, Verdict};

/// What an adapter does with messages that are not refused.
pub trait MessageHandler {
    /// Why a message cannot be handled.
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

/// What the server receives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToServer {
    /// The bytes as they came.
    Unchanged,
    /// The rest of a batch.
    Rest(String),
    /// No message.
    Nothing,
}

/// The answers to refused calls.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// The answers, as JSON texts. A call without an id gets none.
    pub texts: Vec<String>,
    /// True if the calls were in a batch.
    pub is_batch: bool,
    /// True if a rule ended the run.
    pub terminates: bool,
}

/// The decisions about the messages of one line or body.
#[derive(Debug, PartialEq, Eq)]
pub struct Decided {
    /// What the server receives.
    pub to_server: ToServer,
    /// What the client receives.
    pub answers: Answers,
}

/// A refused call and its answer.
type Refused = (Box<Refusal>, Option<String>);

impl Answers {
    /// Returns the message to the client, if there is one.
    pub fn message(&self) -> Option<String> {
        match (&*self.texts, self.is_batch) {
            ([], _) => None,
            (texts, true) => Some(format!("[{}]", texts.join(","))),
            (texts, false) => Some(texts.concat()),
        }
    }

    /// Records refused calls and adds their answers. A call is recorded before it is answered.
    fn record(mut self, session: &Session, refused: Vec<Refused>, frame_bytes: u64) -> Self {
        for (refusal, text) in refused {
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
) -> Result<Decided, H::Error> {
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
                let bytes_in = if messages.is_batch { call.text.len() as u64 } else { messages.bytes };
                if let Some(refusal) = decide_call(session, call, bytes_in, handler) {
                    refused.push(refusal);
                    continue;
                }
            }
        }
        if !handler.answers(message)? {
            kept.push(message.text());
        }
    }
    let to_server = match kept.len() {
        kept if kept == messages.messages.len() => ToServer::Unchanged,
        0 => ToServer::Nothing,
        _ => ToServer::Rest(format!("[{}]", kept.join(","))),
    };
    let answers = Answers { is_batch: messages.is_batch, ..Answers::default() };
    Ok(Decided { to_server, answers: answers.record(session, refused, H::FRAME_BYTES) })
}

/// Decides about a message that is too large to be inspected, and records it if it is a refused call.
pub fn decide_scanned<H: MessageHandler>(
    session: &Session,
    found: &ScannedMessage,
    bytes_in: u64,
    handler: &mut H,
) -> Decided {
    let refused = if found.is_call { decide_scanned_call(session, found, bytes_in, handler) } else { None };
    let to_server = if refused.is_some() { ToServer::Nothing } else { ToServer::Unchanged };
    let answers = Answers::default().record(session, refused.into_iter().collect(), H::FRAME_BYTES);
    Decided { to_server, answers }
}

fn decide_call(
    session: &Session,
    call: &ToolCall<'_>,
    bytes_in: u64,
    handler: &mut impl MessageHandler,
) -> Option<Refused> {
    let args = match &call.args {
        Ok(value) => IncomingArgs::Inspected { value, text: Cow::Borrowed(&*call.args_text) },
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
) -> Option<Refused> {
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

/// The request of a call.
struct Request<'a> {
    id: Option<&'a RequestId>,
    revision: Revision,
}

/// Decides about a call. Returns none if it is forwarded.
fn begin(
    session: &Session,
    incoming: &IncomingCall<'_>,
    request: &Request<'_>,
    handler: &mut impl MessageHandler,
) -> Option<Refused> {
    match session.begin(incoming) {
        Verdict::Forward(call) => {
            match request.id {
                Some(id) => handler.forwarded(id, call),
                // A notification has no response.
                None => session.end(&call, CallResult::without_response()),
            }
            None
        }
        Verdict::Refuse(refusal) => {
            let responses = session.policy().responses();
            let answer = request.id.map(|id| refusal_message(&refusal, id, responses, request.revision));
            Some((refusal, answer))
        }
    }
}

const fn revision(is_stateless: bool) -> Revision {
    if is_stateless { Revision::Stateless } else { Revision::WithInitialize }
}
