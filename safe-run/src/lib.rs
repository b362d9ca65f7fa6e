//! Runs one command and records it: its output in the order in which it was read, how it ended, and with the guarantee that no
//! process of it is left running.
//!
//! ```text
//! command ─▶ session: supervision, both streams, signals, terminal ─▶ capture ─▶ Record ─▶ log, JSON lines
//!                                                                                              │
//!                                                                                  ParsedRecord ◀─ parse ┘
//! ```
//!
//! The session stores bytes as they arrive and forwards them. Lines and events are made afterwards from the capture, so recording
//! is cheap and memory use does not grow with the output. The program `safe-run` is [`program::run`].
//!
//! The crate does not judge what a command did, and it is not a sandbox: a hostile command can evade its record.
//!
//! # Example
//!
//! ```no_run
//! # #[cfg(unix)]
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     use counterproof_safe_run::{Input, Io, LogView, Options, Signals, enter, record};
//!
//!     // The program starts itself again as the supervisor of the command.
//!     if enter().is_some() {
//!         return Ok(());
//!     }
//!     let (signals, received) = Signals::pipe()?;
//!     let io = Io { input: Input::Inherited, signals, received };
//!     let command = ["make".into(), "test".into()];
//!     let record = record(&command, &Options::default(), io, &mut |_, _, _| {})?;
//!     println!("ended with {}", record.ending);
//!     record.write_log(LogView::Ledger, &mut std::io::stdout())?;
//!     Ok(())
//! }
//! # #[cfg(not(unix))]
//! # fn main() {}
//! ```

#![cfg_attr(not(any(unix, windows)), expect(dead_code, reason = "records can be read but not made on other systems"))]

mod cancellation;
mod capture;
#[cfg(any(unix, windows))]
mod command;
mod options;
mod parse;
pub mod program;
mod record;
#[cfg(unix)]
mod session;
mod signal_actions;
#[cfg(unix)]
mod supervision;
#[cfg(windows)]
mod windows;

pub use cancellation::{CancelCallback, Cancellation, Cancelled};
pub use capture::{Line, LineEnd, Stream};
#[cfg(any(unix, windows))]
pub use command::{Command, Input, Observer};
pub use options::{Options, OutputMode};
pub use parse::{EndDetails, LineError, ParsedRecord, ReadError, RecordFormat};
pub use record::{
    EVENT_SCHEMA, EVENT_SCHEMA_SOURCE, Ending, Event, EventKind, LogView, OutputHead, Record, StartError, StopReason,
};
#[cfg(unix)]
pub use session::{CommandSignals, Io, Signals, SupervisedCommand, TakenSignals, record, record_after_taking};
#[cfg(unix)]
pub use signal_actions::is_ignored;
pub use signal_actions::{keep_exit_statuses, report_file_size_limit};
#[cfg(unix)]
pub use supervision::{CommandStreams, enter};

/// The version of the conformance contract that defines logs, exit codes and file names.
pub const CONTRACT: &str = "M0-v0.1.0";

#[cfg(not(unix))]
pub const fn enter() -> Option<std::process::ExitCode> {
    None
}
