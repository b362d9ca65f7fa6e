//! The program `safe-run`: arguments and environment in, messages and an exit code out.

mod archive;
mod check;
mod dispatch;
mod help;
mod parse_arguments;
#[cfg(any(unix, windows))]
mod run;
mod settings;

pub use dispatch::run;
