//! The tools of the agent.
//!
//! ```text
//! call of the model ─▶ toolbox: arguments, policy ─▶ files: read, write, edit ─┐
//!                                                 ─▶ search ───────────────────┼▶ outcome: message, record
//!                                                 ─▶ shell ─▶ sandbox ─────────┘
//! ```
//!
//! The module does not talk to a model and does not store records.

mod sandbox;
mod toolbox;

pub use sandbox::{Sandbox, SandboxChoice, SandboxError, SandboxedCommand};
pub use toolbox::{AgentPolicy, ToolOptions, ToolOutcome, Tools};
