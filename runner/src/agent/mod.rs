//! Protocols: conversion of cases into requests and of responses into artifacts, one file per protocol.

mod agui;
mod answer;
mod anthropic_messages;
mod dialogue;
mod http_endpoint;
mod http_mapping;
mod lenient;
mod mapping_path;
mod native;
mod openai_chat;
mod openai_responses;
mod propose;
mod protocol;
mod stream;
mod streamed_answer;
mod template;

pub(crate) use dialogue::{CallResult, RequestedCall, ToolDefinition, user_message};
pub use http_endpoint::MappedAnswer;
pub use http_mapping::{
    ActionsMapping, CallsMapping, DocumentsMapping, HttpMapping, HttpMethod, RequestPath, RequestPathError,
    UnknownMethod, UsageMapping,
};
pub(crate) use lenient::FILLED_IN;
pub use mapping_path::{AnswerPath, ElementPath, PathError};
pub use propose::propose;
pub use protocol::{AgentOptions, ReservedField, RiskTable};
pub(crate) use protocol::{AnswerContext, ChatMessage, ProtocolAdapter, RequestInput, TurnInput};
pub use protocol::{Protocol, ProtocolError};
pub use stream::StreamFormat;
pub use template::{BodyTemplate, TemplateError};
