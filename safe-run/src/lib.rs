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

mod event;
mod export;
mod jsonl;
mod log;
mod options;
mod record;
mod redacted;
mod reread;
#[cfg(unix)]
mod session;
mod shell;
mod spool;
#[cfg(unix)]
mod stage;
mod tail;
mod tape;

pub use event::{Event, EventKind, Line, LineEnd};
pub use export::{Destination, ExportError, Exported, Source, export};
pub use jsonl::{EVENT_SCHEMA, EVENT_SCHEMA_SOURCE};
pub use log::{BASE64, View};
pub use options::{Options, Output};
pub use record::{Ending, Record, StartError};
pub use reread::{EndDetails, RecordKind, Recorded, RereadError, Wrong};
#[cfg(unix)]
pub use session::{Input, Observer, Signals, Wires, record};
#[cfg(unix)]
pub use stage::enter;
pub use tape::Stream;

/// The contract that logs, exit codes and the names of artifacts follow.
pub const CONTRACT: &str = "M0-v0.1.0";

/// Where there are no process groups, the program never starts itself as anything else.
#[cfg(not(unix))]
pub const fn enter() -> Option<std::process::ExitCode> {
    None
}
