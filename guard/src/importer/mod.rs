//! Puts the guard in front of the MCP servers that a client has configured, and removes it.
//!
//! ```text
//! file ─▶ config_tree: values with byte ranges ─▶ servers ─▶ wrap: text edits ─▶ backup, record, file
//! ```
//!
//! [`import`] changes only the commands of servers, in the text of the configuration. Comments, order, indentation, line ends and
//! unknown fields stay byte for byte. [`restore`] returns the bytes of the original, or unwraps the servers in a file that was edited
//! in the meantime.

mod backup;
mod client;
mod config_file;
mod config_tree;
mod diff;
mod error;
mod import;
mod import_record;
mod json_tree;
mod mask;
mod restore;
mod servers;
mod text_edits;
mod toml_tree;
mod wrap;

#[cfg(test)]
mod tests;

pub use client::{Client, Platform, UnknownClient};
pub use error::ImportError;
pub use import::{ImportOptions, ImportReport, Mode, import};
pub use restore::{RestoreOptions, RestoreReport, Restored, restore};
pub use wrap::{ServerChange, ServerStatus, ShimCommand};
