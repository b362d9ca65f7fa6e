//! Protocols: conversion of cases into requests and of responses into artifacts, one file per protocol.

mod answer;
mod document;
mod messages;
mod native;
mod openai_chat;
mod openai_responses;
mod options;
mod protocol;
mod protocol_adapter;
mod usage;

pub use options::{AgentOptions, ReservedField, RiskTable};
pub use protocol::{Protocol, ProtocolError};
pub(crate) use protocol_adapter::{AnswerContext, ProtocolAdapter, RequestInput};
