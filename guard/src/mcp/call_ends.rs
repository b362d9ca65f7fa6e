//! Records the ends of the calls that the server answers: the same for every transport.

use counterproof_artifact::Sha256Digest;
use counterproof_ledger::event::{CallId, CallStatus};

use super::{RequestId, Response, ResponseKind, ScannedMessage};
use crate::session::{CallResult, ResultBytes, Session};

/// Records the ends of the calls that responses answer. `take` removes and returns the call of a request.
pub fn end_calls(session: &Session, responses: &[Response<'_>], take: impl Fn(&RequestId) -> Option<CallId>) {
    for response in responses {
        let Some(call) = take(&response.id) else { continue };
        let result = ResultBytes::Inspected(response.payload.as_bytes());
        let received = Received { kind: response.kind.clone(), bytes_out: response.text.len() as u64, result };
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
    end_call(session, &call, Received { kind: kind.clone(), bytes_out: length, result });
}

/// What the server has answered.
struct Received<'a> {
    kind: ResponseKind,
    bytes_out: u64,
    result: ResultBytes<'a>,
}

/// Records the end of a call, or that its server waits for input of the client.
fn end_call(session: &Session, call: &CallId, received: Received<'_>) {
    let Received { kind, bytes_out, result } = received;
    let (status, error) = match kind {
        ResponseKind::InputRequired { request_state } => return session.wait_for_input(call, request_state),
        ResponseKind::Result => (CallStatus::Ok, None),
        ResponseKind::Failed { status, error } => (status, Some(error)),
    };
    session.end(call, CallResult { status, error, bytes_out, result });
}
