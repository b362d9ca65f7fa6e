//! Requests to a model with an OpenAI-compatible chat endpoint.
//!
//! ```text
//! messages, tools ─▶ client: body ─▶ attempts, each a record ─▶ answer: message for the history, tool calls, usage
//! ```
//!
//! The module does not run tools, and does not store records: the caller does both.

mod answer;
mod client;
mod options;
mod retry;

pub use answer::Answer;
pub use client::{AskError, Attempts, ModelClient, ModelError, RecordError};
pub use options::{ApiKey, InvalidPrice, ModelOptions, Price};
