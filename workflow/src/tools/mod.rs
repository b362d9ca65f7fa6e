//! The tools of the agent.
//!
//! ```text
//! call of the model ─▶ toolbox: arguments, policy ─▶ file_tools, search ─▶ workspace_files ─┐
//!                                                 ─▶ shell ─▶ sandbox ──────────────────────┼▶ outcome: message, record
//! ```
//!
//! The module does not talk to a model and does not store records.

mod arguments;
mod definitions;
mod file_tools;
mod sandbox;
mod search;
mod shell;
mod toolbox;
mod workspace_files;

pub use sandbox::{OutputObserver, Sandbox, SandboxChoice, SandboxError, SandboxedCommand, UnknownSandbox};
pub use toolbox::{AgentPolicy, ToolOptions, ToolOutcome, Tools};
