//! A command that has run: its ending, its output, and its events.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use std::{fmt, io};

use jiff::Timestamp;
use memchr::memrchr_iter;
use serde::{Deserialize, Serialize};

use super::log;
use crate::capture::{Capture, Line, Stream, for_each_line};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Exited(i32),
    Killed(i32),
}

impl Ending {
    /// Returns the number of the signal that killed the command.
    pub const fn signal(self) -> Option<i32> {
        match self {
            Ending::Exited(_) => None,
            Ending::Killed(signal) => Some(signal),
        }
    }

    /// Returns the exit code as a shell reports it: the command's own, or 128 plus the signal number.
    pub fn exit_code(self) -> i32 {
        match self {
            Ending::Exited(code) => code,
            // As shells report it.
            Ending::Killed(signal) => 128 + signal,
        }
    }

    pub fn is_success(self) -> bool {
        self == Ending::Exited(0)
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Exited(code) => write!(f, "exit code {code}"),
            Ending::Killed(signal) => write!(f, "signal {signal}"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    TimedOut,
    Cancelled,
    OutputTooLarge,
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StopReason::TimedOut => "the command did not end within its time limit",
            StopReason::Cancelled => "the command was cancelled",
            StopReason::OutputTooLarge => "the command printed more than the limit",
        })
    }
}

#[derive(Debug)]
pub struct Record {
    pub command: Vec<OsString>,
    pub started_at: Timestamp,
    /// Time from the start until the command had ended and both of its streams were closed.
    pub elapsed: Duration,
    /// How the command ended.
    pub ending: Ending,
    /// The first signal that was forwarded to the command.
    pub aborted_by: Option<i32>,
    /// The limit of a [`Command`](crate::Command) that ended it; `None` if no limit ended it.
    pub stopped: Option<StopReason>,
    /// Number of processes that the command left behind and that were killed.
    pub left_behind: u32,
    /// The error that stopped the capture; output after it is missing from the record.
    pub capture_error: Option<io::Error>,
    /// Errors from writing the command's output to the streams of this process, such as on a full disk. A reader that has
    /// closed its end is not an error.
    pub output_errors: Vec<(Stream, io::Error)>,
    pub(crate) capture: Capture,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the command is empty")]
    NoCommand,
    #[error("cancelled before the command was started")]
    Cancelled,
    #[error("failed to start `{program}`")]
    Command { program: String, source: io::Error },
    #[error("cannot run a command in the folder `{folder}`", folder = folder.display())]
    WorkingDirectory { folder: PathBuf, source: io::Error },
    #[error("this program cannot supervise a command: it does not call `counterproof_safe_run::enter` first in `main`")]
    NotEntered,
    /// The system has no `/proc`, without which the supervisor can neither be started nor find what a command leaves behind.
    #[error("cannot supervise a command: /proc is not mounted")]
    NoProc,
    #[error("failed to prepare the processes and pipes for the command")]
    Setup(#[source] io::Error),
}

/// The most that [`Record::tail`] returns of one stream, in bytes.
const LIMIT: u64 = 64 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputHead {
    /// The bytes, at most as many as requested.
    pub bytes: Vec<u8>,
    /// True if the stream has more bytes.
    pub is_cut: bool,
}

impl Record {
    /// Returns the first bytes of a stream, at most `limit`.
    pub fn head(&self, stream: Stream, limit: u64) -> io::Result<OutputHead> {
        let captured = self.capture.bytes(stream);
        let mut bytes = Vec::new();
        captured.copy(0, captured.len().min(limit), &mut bytes)?;
        Ok(OutputHead { bytes, is_cut: captured.len() > limit })
    }

    /// Returns the last `lines` lines of a stream, at most 64 KiB.
    pub fn tail(&self, stream: Stream, lines: usize) -> io::Result<Vec<u8>> {
        let bytes = self.capture.bytes(stream);
        let from = bytes.len().saturating_sub(LIMIT);
        let mut end = Vec::new();
        bytes.copy(from, bytes.len(), &mut end)?;
        // The newline that ends the last line does not begin another one.
        let last = end.len().saturating_sub(1);
        let before = memrchr_iter(b'\n', &end[..last]).nth(lines.saturating_sub(1));
        Ok(if lines == 0 { Vec::new() } else { end.split_off(before.map_or(0, |newline| newline + 1)) })
    }
}

#[derive(Debug)]
pub struct Event<'a> {
    /// The sequence number, counted from 1.
    pub seq: u64,
    /// Time since the start of the command.
    pub at: Duration,
    pub kind: EventKind<'a>,
}

#[derive(Debug)]
pub enum EventKind<'a> {
    Started,
    Line(Stream, Line<'a>),
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

    pub fn command_line(&self) -> String {
        log::quote(&self.command)
    }
}
