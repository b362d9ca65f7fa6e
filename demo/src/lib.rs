//! The built-in agent: a small shop's support desk that speaks the wire protocol over HTTP, in two variants.
//!
//! A request names a case. The playbook of the case calls the shop's tools and records every step, and the server returns the
//! steps. It uses neither randomness nor a clock, thus a case always gives the same bytes. [`Variant::New`] differs in eight
//! of the ten cases, and the baseline has an outage in another: see [`PLANTED`].
//!
//! The same shop is an MCP server too ([`serve_tools`]), with an agent that calls its tools ([`run_agent`]).
//!
//! The library depends on neither the runner nor the evaluator: it implements the agent's side of the protocol.
//!
//! ```no_run
//! use counterproof_demo::{Variant, start};
//!
//! # async fn example() -> std::io::Result<()> {
//! let agent = start(Variant::Baseline).await?;
//! println!("POST a case to {}/run-case", agent.base_url());
//! # Ok(()) }
//! ```

mod cases;
mod mcp;
mod playbook;
mod server;
mod shop;
mod trace;
mod variant;

pub use cases::{CASES, PLANTED, Planted};
pub use mcp::{AgentEnd, GUARD_CASES, GUARD_PLANTED, GUARD_POLICY, ServerEnd, run_agent, serve_tools};
pub use server::{Agent, serve, start};
pub use variant::{UnknownVariant, Variant};
