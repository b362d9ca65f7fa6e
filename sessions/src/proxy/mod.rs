//! The recording proxy: it stands between an agent and its model server, changes no byte, and records each model call.
//!
//! ```text
//! agent ─▶ connections ─▶ peers ─▶ request_body ─▶ recorder: answered tool calls ─▶ upstream ─▶ server
//!   ▲                                                 ▲                                           │
//!   └── answer_body ◀── exchange ◀── answer_reader ◀──┴── the record of the call ◀────────────────┘
//! ```
//!
//! The results of tools in a request are durable before the request leaves. The record of a model call is durable before
//! the last piece of its answer is passed on, and all earlier pieces pass as they come.

mod answer_body;
mod answer_reader;
mod content_coding;
mod exchange;
mod headers;
mod peers;
mod recorder;
mod records;
mod request_body;
mod server;
mod upstream;

#[cfg(test)]
mod tests;

pub use answer_reader::MAX_RECORDED_ANSWER;
pub use recorder::ProxyCounts;
pub use records::{RecordError, Records, Secret};
pub use request_body::MAX_RECORDED_REQUEST;
pub use server::{ListeningProxy, ProxyError, ProxyOptions};
pub use upstream::{ANTHROPIC_DEFAULT, OPENAI_DEFAULT, UpstreamUrl, UpstreamUrlError};
