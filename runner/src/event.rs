//! The events of a run, and the interface of the reporters that receive them.

use std::fmt;
use std::time::Duration;

use camino::Utf8PathBuf;
use counterproof_artifact::{CaseId, FailureClass, RunId, Side};
use jiff::Timestamp;
use serde::{Serialize, Serializer};

use crate::environment::{Clock, Moment, whole_millis};

/// An event with its time.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEvent {
    /// The time of day.
    pub at: Timestamp,
    /// Time since the clock was started. It never decreases from one event to the next.
    pub elapsed: Duration,
    /// What happened.
    pub kind: EventKind,
}

impl RunEvent {
    pub(crate) fn now(clock: &dyn Clock, kind: EventKind) -> Self {
        let Moment { at, elapsed } = clock.read();
        Self { at, elapsed, kind }
    }
}

/// Receives the events of a run, on the thread that called [`crate::run()`] and in the order in which they happened.
pub trait Reporter {
    /// Handles one event. The run waits for this to return.
    fn report(&mut self, event: &RunEvent);
}

/// The kind of an event. The serialised names and fields are a public interface: see `docs/events.md`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// The run folder was created and contains a first `run.json`.
    RunStarted {
        /// The run. It is not serialised here, because every line of the stream contains it.
        #[serde(skip)]
        run_id: RunId,
        /// The side of the run.
        side: Side,
        /// The run folder.
        folder: Utf8PathBuf,
        /// How many cases will run.
        cases: usize,
    },
    /// A case was started.
    CaseStarted {
        /// The id of the case.
        case_id: CaseId,
    },
    /// An attempt failed and will be retried.
    AttemptFailed {
        /// The id of the case.
        case_id: CaseId,
        /// The number of the attempt, counted from 1.
        attempt: u32,
        /// The failure.
        failure: FailureNote,
        /// How long the runner waits before the next attempt.
        #[serde(rename = "retry_in_ms", serialize_with = "as_millis")]
        retry_in: Duration,
    },
    /// A case is complete: its artifact is on disk.
    CaseFinished {
        /// The id of the case.
        case_id: CaseId,
        /// The number of attempts; 0 if the case was skipped.
        attempts: u32,
        /// The failure of the last attempt; `None` if the agent answered.
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<FailureNote>,
    },
    /// The adaptive limit on cases in flight changed.
    ConcurrencyChanged {
        /// The new limit.
        limit: usize,
    },
    /// The agent looks down: the remaining cases are skipped, and each gets an artifact that records it.
    // The serialised names are older than the terms of the code, and readers of the stream depend on them.
    #[serde(rename = "agent_given_up")]
    AgentDown {
        /// The number of consecutive failures.
        #[serde(rename = "in_a_row")]
        consecutive_failures: u32,
        /// How many cases will be skipped.
        #[serde(rename = "not_asked")]
        skipped: usize,
    },
    /// A limit on the cost or the tokens of the run is reached: the remaining cases are skipped.
    LimitReached {
        /// The sum and the limit, in words.
        cause: String,
    },
    /// The run was asked to stop: no further case is started.
    RunInterrupted {
        /// How many cases are in flight.
        in_flight: usize,
    },
    /// The run ended, and `run.json` contains its statistics.
    RunFinished {
        /// The numbers of cases.
        counts: Counts,
    },
}

/// The summary of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FailureNote {
    /// The contract's failure class.
    pub class: FailureClass,
    /// The stable name within the class: see [`crate::Reason`].
    #[serde(rename = "error_name")]
    pub name: &'static str,
    /// The HTTP status, if a response arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

impl fmt::Display for FailureNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class, self.name)?;
        self.status.map_or(Ok(()), |status| write!(f, ", status {status}"))
    }
}

/// The numbers of cases by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// Selected cases.
    pub selected: usize,
    /// Cases that the agent answered.
    pub answered: usize,
    /// Cases that ended with a runner failure.
    pub failed: usize,
    /// Cases with more than one attempt.
    pub retried: usize,
    /// Attempts over all cases.
    pub attempts: usize,
    /// Cases that were complete before the run was resumed. They also count as answered or failed.
    #[serde(rename = "kept")]
    pub already_complete: usize,
    /// Failed cases that were skipped because the agent looked down.
    #[serde(rename = "not_asked")]
    pub skipped: usize,
    /// Failed cases that were not retried because the run's retry budget was used up.
    pub over_budget: usize,
}

impl Counts {
    /// Adds the outcome of a case from an earlier process.
    pub(crate) const fn add(&mut self, case: &Counts) {
        // Not `skipped`: a resume runs the skipped cases again.
        self.answered += case.answered;
        self.failed += case.failed;
        self.retried += case.retried;
        self.attempts += case.attempts;
    }

    /// Subtracts the outcome of a case that runs again.
    pub(crate) const fn subtract(&mut self, case: &Counts) {
        self.answered -= case.answered;
        self.failed -= case.failed;
        self.retried -= case.retried;
        self.attempts -= case.attempts;
    }

    /// Returns the number of cases without an artifact. It is positive only if the run was stopped.
    pub const fn not_run(&self) -> usize {
        self.selected - self.answered - self.failed
    }
}

fn as_millis<S: Serializer>(span: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(whole_millis(*span))
}
