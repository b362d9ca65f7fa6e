//! The kind of a response: a result, an error, or a question to the client.

use counterproof_ledger::event::{CallError, CallStatus, ErrorClass};

/// The code by which SDKs report that a request took too long.
const REQUEST_TIMEOUT: i64 = -32001;

/// What a response says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResponseKind {
    Result,
    /// An error, or a result that the tool marks as an error.
    Failed {
        /// `Error` or `Timeout`.
        status: CallStatus,
        error: CallError,
    },
    /// The server needs input of the client, which sends the request again with it.
    InputRequired {
        /// The state that the client sends back.
        request_state: Option<String>,
    },
}

/// Classifies a JSON-RPC error.
pub(super) fn error_kind(code: Option<i64>, message: String) -> ResponseKind {
    let is_timeout = code == Some(REQUEST_TIMEOUT);
    let (status, class) = if is_timeout {
        (CallStatus::Timeout, ErrorClass::Timeout)
    } else {
        (CallStatus::Error, ErrorClass::UpstreamError)
    };
    let error =
        CallError { class, message, code: code.map(|code| code.to_string()), retryable: is_timeout.then_some(true) };
    ResponseKind::Failed { status, error }
}

/// The error of a tool with a message.
pub(super) fn tool_error_with(message: String) -> ResponseKind {
    let error = CallError { class: ErrorClass::UpstreamError, message, code: None, retryable: None };
    ResponseKind::Failed { status: CallStatus::Error, error }
}
