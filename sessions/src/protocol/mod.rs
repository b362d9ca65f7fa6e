//! The protocols of model servers: what their requests and answers mean, without a connection.
//!
//! ```text
//! path, body ─▶ request ──────────────────────────▶ LlmRequest
//! whole body ─────────────────────────▶ response ─▶ LlmResponse
//! pieces ─▶ event_parser ─▶ answer_stream ─┘
//! requests, responses ─▶ answered_calls ─▶ tool_call, command
//! ```

mod answer_stream;
mod answered_calls;
mod anthropic_stream;
mod chat_stream;
mod event_parser;
mod request;
mod response;
mod responses_stream;
mod shell_commands;

pub use answer_stream::{AnswerStream, StreamedAnswer};
pub use answered_calls::{AnsweredCalls, output_text};
pub use request::{api_of_request, request_from_body};
pub use response::{error_message, joined_text, response_from_body, token_count, usage_of};
pub use shell_commands::{ShellOutput, is_shortened, milliseconds, shell_command, shell_output};
