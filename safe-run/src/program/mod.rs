//! The program `safe-run`.

mod archive;
mod archive_format;
mod arguments;
mod check;
mod dispatch;
#[cfg(unix)]
mod events_file;
#[cfg(unix)]
mod log_file;
#[cfg(unix)]
mod run;
mod settings;

pub use dispatch::run;
