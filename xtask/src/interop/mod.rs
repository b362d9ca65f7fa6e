//! Interoperability: the project against third-party software, installed from the package registries.
//!
//! A part whose software cannot be installed prints one line and is skipped. Software that is installed and does not work is a
//! failure.

mod agents;
mod facts;
mod formats;
pub(crate) mod install;
mod litellm;
mod mcp;
mod parts;
mod sessions;

pub(crate) use parts::{Options, prepare, run};
