//! How a recorded run ended.

use crate::query::{RunRecord, RunState};

/// The status of a run that ended as it should.
pub(super) const SUCCEEDED: &str = "SUCCEEDED";

/// The status of a run that failed.
pub(super) const FAILED: &str = "FAILED";

/// How a run or a process of it ended: as the events state it, or `LOST` or `NOT_ENDED` without an end. A worse status is greater.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RecordedStatus {
    severity: u8,
    text: String,
}

impl RecordedStatus {
    /// Reads a status that an event states.
    pub(super) fn new(text: &str) -> Self {
        let severity = match text {
            SUCCEEDED => 0,
            "CANCELLED" => 2,
            "TERMINATED" => 3,
            FAILED => 4,
            "LOST" | "NOT_ENDED" => 5,
            // A status of another producer.
            _ => 1,
        };
        Self { severity, text: text.to_owned() }
    }

    /// Returns the status of a run, the worst of its processes.
    pub(super) fn of_run(run: &RunRecord) -> Self {
        Self::new(match run.state() {
            RunState::Ended => run.status.as_deref().filter(|status| !status.is_empty()).unwrap_or("UNKNOWN"),
            RunState::Lost => "LOST",
            RunState::Open => "NOT_ENDED",
        })
    }

    /// Returns the status of processes of the run that have no end.
    pub(super) fn without_end(run: &RunRecord) -> Self {
        Self::new(if run.state() == RunState::Lost { "LOST" } else { "NOT_ENDED" })
    }

    pub(super) fn is_success(&self) -> bool {
        self.text == SUCCEEDED
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }
}
