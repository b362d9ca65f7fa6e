//! The guard of tool calls: inspects each call, decides about it by a policy, and records it.
//!
//! ```text
//! adapter (MCP over stdio, MCP over HTTP) ─▶ session ─▶ policy: decision
//!          ▲                                   │
//!          └── forward or refuse ◀─────────────┴─▶ events ─▶ ledger
//! ```
//!
//! The core ([`session`], [`policy`]) does not depend on a protocol. An adapter passes it the names, the arguments and the sizes of a
//! call, and turns its decisions into messages.

pub mod agent_run;
pub mod cassette;
pub mod http;
pub mod identity;
pub mod importer;
pub mod mcp;
pub mod policy;
pub mod secrets;
pub mod session;
pub mod stdio;
