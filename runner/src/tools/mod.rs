//! The tools that the runner executes for a model: canned results of the case, commands, and MCP servers.

mod canned;
mod mcp;
mod program;
mod toolbox;

pub(crate) use canned::ToolOutput;
pub use mcp::McpError;
pub(crate) use toolbox::{ToolContext, Toolbox};
