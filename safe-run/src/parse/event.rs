//! One event as it is read from either format.

use std::time::Duration;

use jiff::Timestamp;

/// The text of the first event begins with this.
pub(super) const START_PREFIX: &str = "safe-run start: cmd=\"";

/// The text of the last event begins with this.
pub(super) const EXIT_PREFIX: &str = "safe-run exit: code=";

/// What the last event of a file of events states besides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndDetails {
    /// The signal that killed the command.
    pub signal: Option<i32>,
    /// The signal that safe-run received and forwarded.
    pub aborted_by: Option<i32>,
    /// Number of processes that the command left behind; `None` if it left none.
    pub left_behind: Option<u32>,
}

/// An event and the line of the file in which it was found.
#[derive(Debug)]
pub(super) struct ParsedEvent {
    pub(super) line: usize,
    pub(super) seq: u64,
    pub(super) origin: Origin,
    /// The text as the ledger has it.
    pub(super) text: String,
    pub(super) started_at: Option<Timestamp>,
    pub(super) at: Option<Duration>,
    pub(super) end: EndDetails,
}

/// Where the text of an event comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    Stdout,
    Stderr,
    Meta,
}

impl Origin {
    pub(super) fn parse(name: &str) -> Option<Self> {
        match name {
            "STDOUT" => Some(Origin::Stdout),
            "STDERR" => Some(Origin::Stderr),
            "META" => Some(Origin::Meta),
            _ => None,
        }
    }
}
