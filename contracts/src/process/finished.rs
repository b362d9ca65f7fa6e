//! A command that has ended.

use std::fmt;
use std::time::Duration;

use counterproof_safe_run::{Ending, OutputHead, Record};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Why a command was stopped instead of ending by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The time limit was over.
    TimedOut,
    Cancelled,
    /// It printed more than the limit.
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

/// A command that has ended, with its output. The output is not redacted: it is for checks, and only the
/// [evidence](super::EvidenceFolder) may be stored.
#[derive(Debug)]
pub struct FinishedCommand {
    /// The time of the start.
    pub started_at: Timestamp,
    /// The time from the start until both streams were closed.
    pub duration: Duration,
    pub ending: Ending,
    /// Why it was stopped; `None` if it ended by itself.
    pub stopped: Option<StopReason>,
    /// The start of standard output.
    pub stdout: OutputHead,
    /// The start of standard error.
    pub stderr: OutputHead,
    pub(super) record: Record,
}

impl FinishedCommand {
    /// Returns the exit code as a shell reports it: the command's own, or 128 plus the number of the signal.
    pub fn exit_code(&self) -> i32 {
        self.ending.exit_code()
    }

    /// True if the command ended by itself with exit code 0.
    pub fn is_success(&self) -> bool {
        self.stopped.is_none() && self.ending.is_success()
    }
}
