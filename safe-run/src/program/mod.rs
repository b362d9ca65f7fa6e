//! The program `safe-run`: arguments and environment in, messages and an exit code out.

mod archive;
mod archive_format;
mod arguments;
mod check;
mod console;
mod dispatch;
#[cfg(unix)]
mod events_file;
mod exit_code;
mod help;
#[cfg(unix)]
mod log_file;
mod parse_arguments;
#[cfg(unix)]
mod run;
mod settings;
mod usage_error;

pub use dispatch::run;
