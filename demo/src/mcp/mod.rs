//! The shop as an MCP server over standard input and output, and an agent that calls its tools, in two variants.
//!
//! Neither starts a process: the caller connects them, for example through `guard shim`.

mod agent;
mod guarded_cases;
mod protocol;
mod server;

pub use agent::{AgentEnd, run_agent};
pub use guarded_cases::{GUARD_CASES, GUARD_PLANTED, GUARD_POLICY};
pub use server::{ServerEnd, serve_tools};
