//! Puts the guard in front of the MCP servers that a client has configured, and removes it.
//!
//! ```text
//! config_file ─▶ config_tree: values with byte ranges ─▶ wrap: text edits ─▶ backup, record, config_file
//! ```
//!
//! [`import`] changes only the commands of servers, in the text of the configuration. Comments, order, indentation, line ends and
//! unknown fields stay byte for byte. [`restore`] returns the bytes of the original, or unwraps the servers in a file that was edited
//! in the meantime.

mod client;
mod config_file;
mod config_tree;
mod diff;
mod import;
mod restore;
#[cfg(test)]
mod tests;
mod wrap;

pub use client::{Client, Platform, UnknownClient};
pub use config_file::ImportError;
pub use import::{ImportOptions, ImportReport, Mode, import};
pub use restore::{RestoreOptions, RestoreOutcome, RestoreReport, restore};
pub use wrap::{ServerChange, ServerStatus, ShimCommand};
