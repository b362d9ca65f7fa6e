//! The state of a running command.

use std::io::{self, PipeReader};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::deadline::after;
use super::input_relay::InputRelay;
use super::io::Observer;
use super::output_pipe::OutputPipe;
use super::terminal::Terminal;
use crate::capture::{Capture, Stream};
use crate::options::Options;
use crate::record::{Ending, StopReason};
use crate::supervision::Connection;

/// The phase of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Running,
    /// The supervisor was asked to kill every remaining process.
    Finishing,
}

/// The limits of a command.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Limits {
    pub(super) timeout: Option<Duration>,
    /// Maximum bytes of both streams together.
    pub(super) output: Option<u64>,
}

/// A command while it runs.
pub(super) struct Session<'a> {
    pub(super) options: &'a Options,
    pub(super) observer: &'a mut Observer<'a>,
    pub(super) started: Instant,
    /// The connection to the supervisor; `None` after the supervisor has ended.
    pub(super) supervisor: Option<Connection>,
    /// The process group of the command.
    pub(super) group: Option<Pid>,
    pub(super) signals: PipeReader,
    /// The command's output streams; `None` after a stream was closed.
    pub(super) sources: [Option<OwnedFd>; 2],
    /// Number of bytes still to read from each stream after the deadline for the streams.
    pub(super) remaining: [Option<u64>; 2],
    pub(super) outputs: [OutputPipe; 2],
    /// The buffer for all reads.
    pub(super) buffer: Vec<u8>,
    pub(super) capture: Capture,
    pub(super) capture_error: Option<io::Error>,
    pub(super) output_errors: Vec<(Stream, io::Error)>,
    pub(super) terminal: Terminal,
    /// Present only if the command has a terminal of its own.
    pub(super) relay: Option<InputRelay>,
    pub(super) ending: Option<Ending>,
    /// The operating system's error number, if the command could not be started.
    pub(super) start_error: Option<i32>,
    pub(super) aborted_by: Option<i32>,
    /// The end of the time limit; `None` after it has passed.
    pub(super) time_limit: Option<Instant>,
    /// The bytes that the command may still print; `None` without a limit, and after it was exceeded.
    pub(super) output_left: Option<u64>,
    /// The first limit that was exceeded.
    pub(super) stopped: Option<StopReason>,
    pub(super) left_behind: u32,
    pub(super) phase: Phase,
    /// When the current wait ends: for a command that received a signal, for open streams, or for the supervisor.
    pub(super) deadline: Option<Instant>,
}

impl Session<'_> {
    /// Returns true if both output streams of the command are closed.
    pub(super) fn is_drained(&self) -> bool {
        self.sources.iter().all(Option::is_none)
    }

    pub(super) fn is_finishing(&self) -> bool {
        self.phase == Phase::Finishing
    }

    pub(super) fn set_ending(&mut self, ending: Ending) {
        self.ending = Some(ending);
        // Processes that the command left behind may hold its streams open: they get the drain time. While finishing, the deadline
        // is that of the supervisor.
        if !self.is_finishing() {
            self.deadline = after(self.options.drain);
        }
    }
}
