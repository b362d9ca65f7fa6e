//! What is known of a command that has run.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::time::Duration;

use jiff::Timestamp;

use crate::capture::{Stream, Tape};

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with a code.
    Exited(i32),
    /// By a signal.
    Killed(i32),
}

impl Ending {
    /// The code to exit with: the command's own, or 128 and the number of the signal.
    pub fn exit_code(self) -> i32 {
        match self {
            Ending::Exited(code) => code,
            Ending::Killed(signal) => 128 + signal,
        }
    }

    /// True for code 0 alone.
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

/// A command that has run, with what it printed.
#[derive(Debug)]
pub struct Record {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// When it was started.
    pub started_at: Timestamp,
    /// From the start until it had ended and its streams were at their end.
    pub elapsed: Duration,
    /// How it ended.
    pub ending: Ending,
    /// The signal that we were sent and passed on, if there was one.
    pub aborted_by: Option<i32>,
    /// How many processes it left behind, which were killed.
    pub left_behind: u32,
    /// Why not all of its output could be kept.
    pub lost: Option<io::Error>,
    /// The streams of ours that could not be written, such as on a full disk, and why. One that nobody reads any more is none.
    pub unwritten: Vec<(Stream, io::Error)>,
    pub(crate) tape: Tape,
}

/// A command that did not run.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no command.
    #[error("no command was given")]
    Nothing,
    /// The system did not start it.
    #[error("failed to start `{program}`")]
    Command {
        /// The program.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// Nobody would supervise it.
    #[error("this program cannot supervise a command: it does not call `counterproof_safe_run::enter` first thing")]
    NotEntered,
    /// The system did not give us what we need to run anything.
    #[error("failed to set up what a command is run with")]
    Setup(#[source] io::Error),
}
