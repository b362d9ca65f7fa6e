//! Protocols: conversion of cases into requests and of responses into artifacts, one file per protocol.

mod answer;
mod dialect;
mod document;
mod messages;
mod native;
mod openai_chat;
mod openai_responses;
mod options;
mod protocol;

pub(crate) use dialect::{Answering, Asking, Dialect};
pub use options::{AgentOptions, ReservedField, RiskTable};
pub use protocol::{Protocol, ProtocolError};
