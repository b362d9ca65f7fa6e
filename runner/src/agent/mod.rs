//! Protocols: conversion of cases into requests and of responses into artifacts, one file per protocol.

mod agui;
mod answer;
mod anthropic_messages;
mod dialogue;
mod native;
mod openai_chat;
mod openai_responses;
mod protocol;
mod sse;
mod stream;

pub(crate) use dialogue::{CallResult, RequestedCall, ToolDefinition, user_message};
pub use protocol::{AgentOptions, ReservedField, RiskTable};
pub(crate) use protocol::{AnswerContext, ChatMessage, ProtocolAdapter, RequestInput, TurnInput};
pub use protocol::{Protocol, ProtocolError};
