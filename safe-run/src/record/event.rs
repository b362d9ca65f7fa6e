//! The events of a record, numbered from 1 without gaps: the start, every line, and the exit.

use std::io;
use std::time::Duration;

use super::Record;
use super::shell;
use crate::capture::{Line, Stream, for_each_line};

/// One event of a record.
#[derive(Debug)]
pub struct Event<'a> {
    /// The sequence number, counted from 1.
    pub seq: u64,
    /// Time since the start of the command.
    pub at: Duration,
    /// What happened.
    pub kind: EventKind<'a>,
}

/// What happened in an [`Event`].
#[derive(Debug)]
pub enum EventKind<'a> {
    Started,
    /// The command printed a line.
    Line(Stream, Line<'a>),
    /// Part of the output could not be captured.
    Incomplete(&'a io::Error),
    /// The command ended; the value is the exit code of safe-run.
    Exited(i32),
}

impl Record {
    /// Calls `visit` with every event in order. Lines come in the order in which they became complete.
    pub fn for_each_event<E: From<io::Error>>(
        &self,
        mut visit: impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut seq = 1;
        visit(Event { seq, at: Duration::ZERO, kind: EventKind::Started })?;
        for_each_line(&self.capture, |stream, at, line| {
            seq += 1;
            visit(Event { seq, at, kind: EventKind::Line(stream, line) })
        })?;
        if let Some(error) = &self.capture_error {
            seq += 1;
            visit(Event { seq, at: self.elapsed, kind: EventKind::Incomplete(error) })?;
        }
        visit(Event { seq: seq + 1, at: self.elapsed, kind: EventKind::Exited(self.ending.exit_code()) })
    }

    /// Returns the command as one line that `sh` splits into the same arguments.
    pub fn command_line(&self) -> String {
        shell::quote(&self.command)
    }
}
