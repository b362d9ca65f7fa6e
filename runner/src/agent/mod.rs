//! Protocols: conversion of cases into requests and of responses into artifacts, one file per protocol.

mod answer;
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
mod template;

pub use http_endpoint::MappedAnswer;
pub use http_mapping::{
    ActionsMapping, CallsMapping, DocumentsMapping, HttpMapping, HttpMethod, RequestPath, RequestPathError,
    UnknownMethod, UsageMapping,
};
pub(crate) use lenient::FILLED_IN;
pub use mapping_path::{AnswerPath, ElementPath, PathError};
pub use propose::propose;
pub use protocol::{AgentOptions, ReservedField, RiskTable};
pub(crate) use protocol::{AnswerContext, ProtocolAdapter, RequestInput};
pub use protocol::{Protocol, ProtocolError};
pub use stream::StreamFormat;
pub use template::{BodyTemplate, TemplateError};
