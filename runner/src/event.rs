//! What happens during a run, told as it happens. How it is shown is up to a [`Reporter`].

use std::time::Duration;

use camino::Utf8PathBuf;
use counterproof_artifact::{CaseId, FailureClass, RunId, Side};
use jiff::Timestamp;
use serde::{Serialize, Serializer};

use crate::record::run_document::millis;
use crate::system::clock::{Clock, Moment};

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEvent {
    /// When.
    pub at: Timestamp,
    /// How long after the clock was started; it never goes back from one event to the next.
    pub elapsed: Duration,
    /// What.
    pub kind: EventKind,
}

impl RunEvent {
    pub(crate) fn now(clock: &dyn Clock, kind: EventKind) -> Self {
        let Moment { at, elapsed } = clock.read();
        Self { at, elapsed, kind }
    }
}

/// Takes the events of a run, on the thread that called [`crate::run()`] and in the order in which they happened.
pub trait Reporter {
    /// Takes one event. The run waits for this to return.
    fn report(&mut self, event: &RunEvent);
}

/// What happened. Names and fields as they are serialised are an interface: see `docs/events.md`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// The run folder was made and holds a first `run.json`.
    RunStarted {
        /// The run. Every line of the serialised stream names it, so the event need not.
        #[serde(skip)]
        run_id: RunId,
        /// Its side.
        side: Side,
        /// Its folder.
        folder: Utf8PathBuf,
        /// How many cases will be asked.
        cases: usize,
    },
    /// A case was taken up.
    CaseStarted {
        /// The case.
        case_id: CaseId,
    },
    /// An attempt failed, and another one follows.
    AttemptFailed {
        /// The case.
        case_id: CaseId,
        /// The attempt, counted from 1.
        attempt: u32,
        /// What went wrong.
        failure: FailureNote,
        /// How long the runner waits before the next attempt.
        #[serde(rename = "retry_in_ms", serialize_with = "as_millis")]
        retry_in: Duration,
    },
    /// A case is complete: its artifact is on disk.
    CaseFinished {
        /// The case.
        case_id: CaseId,
        /// How many attempts it took; 0 where it was not asked.
        attempts: u32,
        /// What went wrong last; `None` where the agent answered.
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<FailureNote>,
    },
    /// The adaptive limit on cases in flight moved.
    ConcurrencyChanged {
        /// How many cases may be in flight from now on.
        limit: usize,
    },
    /// So many cases in a row ended as if nobody were there that the run gives the agent up: those that are left become
    /// artifacts that say so.
    AgentGivenUp {
        /// How many cases in a row.
        in_a_row: u32,
        /// How many cases will not be asked.
        not_asked: usize,
    },
    /// The run was asked to stop: no further case is taken up.
    RunInterrupted {
        /// How many cases are in flight.
        in_flight: usize,
    },
    /// The run ended and `run.json` says how.
    RunFinished {
        /// How it went.
        counts: Counts,
    },
}

/// A failure in short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FailureNote {
    /// The contract's class.
    pub class: FailureClass,
    /// The stable finer name: see [`crate::Reason`].
    #[serde(rename = "error_name")]
    pub name: &'static str,
    /// The HTTP status, where there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

/// How many cases went which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// Cases that were selected.
    pub selected: usize,
    /// Cases that the agent answered.
    pub answered: usize,
    /// Cases that ended as a runner failure.
    pub failed: usize,
    /// Cases that took more than one attempt.
    pub retried: usize,
    /// Attempts over all cases.
    pub attempts: usize,
    /// Cases that were complete before, where a run was resumed; they are among the answered and the failed ones.
    pub kept: usize,
    /// Failed cases that were not asked, because the run had given the agent up.
    pub not_asked: usize,
    /// Failed cases that would have been tried again, had the run's retry budget not been spent.
    pub over_budget: usize,
}

impl Counts {
    /// Counts what one case came to.
    pub(crate) const fn add(&mut self, one: &Counts) {
        self.answered += one.answered;
        self.failed += one.failed;
        self.retried += one.retried;
        self.attempts += one.attempts;
    }

    /// Takes back what one case came to, since it is asked again.
    pub(crate) const fn take_back(&mut self, one: &Counts) {
        self.answered -= one.answered;
        self.failed -= one.failed;
        self.retried -= one.retried;
        self.attempts -= one.attempts;
    }

    /// Cases that have no artifact, because the run was stopped.
    pub const fn not_run(&self) -> usize {
        self.selected - self.answered - self.failed
    }
}

fn as_millis<S: Serializer>(span: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(millis(*span))
}
