//! Interoperability: the project against third-party software, installed from the package registries.
//!
//! A part whose software cannot be installed prints one line and is skipped. Software that is installed and does not work is a
//! failure.

mod cel;
mod install;
mod litellm;
mod mcp;
mod options;
mod postgres;
mod process;

pub(crate) use install::{python, write};
pub(crate) use options::{Options, run};
pub(crate) use process::succeeds;
