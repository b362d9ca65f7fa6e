//! Messages of the Model Context Protocol: which of them are tool calls, what is decided about them, and how a refused call is
//! answered.
//!
//! The module does not depend on a transport: standard input and output, and HTTP, carry the same messages.

mod client_message;
mod forward_or_refuse;
mod message_parts;
mod refusal_message;
mod scanner;
mod server_message;

pub use client_message::{
    ClientMessage, ClientMessages, ToolCall, read_client_message, read_client_messages, read_sample,
};
pub use forward_or_refuse::{
    Answers, MessageDecisions, MessageHandler, PendingCalls, ToServer, decide_messages, decide_scanned, end_calls,
    end_scanned_call, end_unreadable_call,
};
pub(crate) use message_parts::TOOLS_CALL;
pub use message_parts::{RequestId, ResponseKind, StrictError, ToolCallProblem};
pub use refusal_message::{Revision, error_message, refusal_message, uninspected_message};
pub use scanner::{ScannedMessage, Scanner};
pub use server_message::{Response, read_responses};
