//! The end of a call that was answered.

use counterproof_ledger::event::{CallId, CallStatus};

use crate::mcp::ResponseKind;
use crate::session::{CallResult, ResultBytes, Session};

/// Records the end of a call, or that its server waits for input of the client.
pub(super) fn end_call(session: &Session, call: &CallId, kind: ResponseKind, bytes_out: u64, result: ResultBytes<'_>) {
    let (status, error) = match kind {
        ResponseKind::InputRequired { request_state } => return session.wait_for_input(call, request_state),
        ResponseKind::Result => (CallStatus::Ok, None),
        ResponseKind::Failed { status, error } => (status, Some(error)),
    };
    session.end(call, CallResult { status, error, bytes_out, result });
}
