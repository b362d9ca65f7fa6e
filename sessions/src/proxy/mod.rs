//! The recording proxy: it stands between an agent and its model server, changes no byte of a body, and records each model call.
//!
//! ```text
//! agent ─▶ server ─▶ request_body ─▶ recorder: answered tool calls ─▶ model server
//!   ▲                                   ▲                                  │
//!   └── exchange ◀── answer_reader ◀────┴── the record of the call ◀───────┘
//! ```
//!
//! The results of tools in a request are durable before the request leaves. The record of a model call is durable before
//! the last piece of its answer is passed on, and all earlier pieces pass as they come. The client of the
//! model server and the rules for peers are those of the guard's proxy.

mod answer_reader;
mod content_coding;
mod exchange;
mod headers;
mod recorder;
mod request_body;
mod server;

#[cfg(test)]
mod tests;

pub use answer_reader::MAX_RECORDED_ANSWER;
pub use headers::SubstitutedKey;
pub use recorder::{ProxyCounts, RecordError, Records, Secret};
pub use request_body::MAX_RECORDED_REQUEST;
pub use server::{ANTHROPIC_DEFAULT, ListeningProxy, OPENAI_DEFAULT, ProxyError, ProxyOptions};
