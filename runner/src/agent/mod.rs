//! How a case becomes a request and a response becomes an artifact: one file for each protocol.

mod answer;
mod dialect;
mod document;
mod native;
mod openai_chat;
mod openai_responses;
mod options;
mod protocol;
mod question;

pub(crate) use dialect::{Answering, Asking, Dialect};
pub use options::{AgentOptions, ReservedField, RiskTable};
pub use protocol::{Protocol, ProtocolError};
