//! Messages of the Model Context Protocol: which of them are tool calls, what is decided about them, and how a refused call is
//! answered.
//!
//! The module does not depend on a transport: standard input and output, and HTTP, carry the same messages.

mod call_ends;
mod client_message;
mod keys;
mod message_decisions;
mod pending_calls;
mod refusal_message;
mod request_id;
mod request_state;
mod response_kind;
mod sample_request;
mod scanner;
mod server_message;
mod strict_json;
mod tool_call_problem;

pub use call_ends::{end_calls, end_scanned_call, end_unreadable_call};
pub use client_message::{ClientMessage, ClientMessages, ToolCall, read_client_message, read_client_messages};
pub(crate) use keys::TOOLS_CALL;
pub use message_decisions::{Answers, Decided, MessageHandler, ToServer, decide_messages, decide_scanned};
pub use pending_calls::PendingCalls;
pub use refusal_message::{RefusalStyle, Revision, error_message, refusal_message, uninspected_message};
pub use request_id::RequestId;
pub use response_kind::ResponseKind;
pub use sample_request::read_sample;
pub use scanner::{ScannedMessage, Scanner, SyntaxProblem};
pub use server_message::{Response, read_responses};
pub use strict_json::StrictError;
pub use tool_call_problem::ToolCallProblem;
