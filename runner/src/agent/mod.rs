//! Protocols: conversion of cases into requests and of responses into artifacts, one file per protocol.

mod answer;
mod native;
mod openai_chat;
mod openai_responses;
mod protocol;

pub use protocol::{AgentOptions, ReservedField, RiskTable};
pub(crate) use protocol::{AnswerContext, ProtocolAdapter, RequestInput};
pub use protocol::{Protocol, ProtocolError};
