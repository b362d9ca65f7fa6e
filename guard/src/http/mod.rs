//! The adapter for MCP over streamable HTTP: a proxy that forwards every byte except those of refused calls.
//!
//! ```text
//! client ─▶ connections ─▶ peers ─▶ request body ─▶ inspection ─▶ upstream ─▶ server
//!    ▲                                                   │                      │
//!    ├─────────────────── refusal ◀──────────────────────┘                      ▼
//!    └─────────────────── response body ◀──────────────── exchange ◀──── response
//! ```
//!
//! A request is read to its end before it is forwarded, since the decision depends on all of it. A response is forwarded as it
//! comes, and a copy of it is read for the ends of calls.

mod connections;
mod detached_calls;
mod exchange;
mod inspection;
mod messages;
mod peers;
mod proxy;
mod request_body;
mod response_body;
mod upstream;

pub use connections::ClientLimits;
pub use peers::{PeerError, PeerRules};
pub use proxy::{ProxyError, ProxyOptions, serve};
pub use request_body::HOP_BY_HOP;
pub use upstream::{Upstream, UpstreamUrl, UpstreamUrlError, last_cause};
