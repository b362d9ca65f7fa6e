//! A command that has ended.

use std::time::Duration;

use counterproof_safe_run::{Ending, OutputHead, Record, StopReason};
use jiff::Timestamp;

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
