//! One command, recorded so that it can be trusted: what it printed and in which order, how it ended, and nothing of it left
//! running.
//!
//! ```text
//! command ─▶ session: stage (supervisor, launcher), both streams, signals, terminal ─▶ tape ─▶ Record
//!                                                                                                │
//!            ledger, merged view ◀─ log        JSON lines ◀─ jsonl        callers ◀─ event ◀─────┘
//! ```
//!
//! A record that was written is read back by `reread`, and `export` makes a run folder of such records, to be compared.
//!
//! The session keeps bytes as they come and passes them on; lines and events are made afterwards, from what was kept, so that
//! recording costs little and memory does not grow with the output. The program `safe-run` is [`program::run`].
//!
//! It does not judge what a command did, and it is no sandbox: a command that wants to escape its record can.

#![cfg_attr(not(unix), expect(dead_code, reason = "nothing is recorded there; what was recorded is read and exported"))]

pub mod program;

mod capture;
mod export;
mod options;
mod parse;
mod record;
#[cfg(unix)]
mod session;
#[cfg(unix)]
mod supervision;

pub use capture::Stream;
pub use export::{Destination, ExportError, Exported, Source, export};
pub use options::{Options, Output};
pub use parse::{EndDetails, RecordKind, Recorded, RereadError, Wrong};
pub use record::{
    BASE64, EVENT_SCHEMA, EVENT_SCHEMA_SOURCE, Ending, Event, EventKind, Line, LineEnd, Record, StartError, View,
};
#[cfg(unix)]
pub use session::{Input, Observer, Signals, Wires, record};
#[cfg(unix)]
pub use supervision::enter;

/// The contract that logs, exit codes and the names of artifacts follow.
pub const CONTRACT: &str = "M0-v0.1.0";

/// Where there are no process groups, the program never starts itself as anything else.
#[cfg(not(unix))]
pub const fn enter() -> Option<std::process::ExitCode> {
    None
}
