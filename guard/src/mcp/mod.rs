//! Messages of the Model Context Protocol: which of them are tool calls, and how a refused call is answered.
//!
//! The module knows JSON-RPC and MCP, and no transport: standard input and output, and HTTP, carry the same messages.

mod client_message;
mod keys;
mod refusal_message;
mod request_id;
mod scanner;
mod server_message;
mod strict_json;

pub use client_message::{ClientMessage, ToolCall, ToolCallProblem, read_client_message};
pub use refusal_message::{RefusalStyle, Revision, invalid_message, refusal_message};
pub use request_id::RequestId;
pub use scanner::{ScannedMessage, Scanner};
pub use server_message::{Response, ResponseKind, read_responses};
pub use strict_json::StrictError;
