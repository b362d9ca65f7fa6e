//! What happens during a run, told as it happens. How it is shown is up to a [`crate::Reporter`].

use std::time::Duration;

use camino::Utf8PathBuf;
use counterproof_artifact::{CaseId, FailureClass, RunId, Side};
use jiff::Timestamp;

use crate::clock::{Clock, Moment};

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEvent {
    /// When.
    pub at: Timestamp,
    /// How long after the clock was started.
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

/// What happened.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum EventKind {
    /// The run folder was made and holds a first `run.json`.
    RunStarted {
        /// The run.
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
        retry_in: Duration,
    },
    /// A case is complete: its artifact is on disk.
    CaseFinished {
        /// The case.
        case_id: CaseId,
        /// How many attempts it took.
        attempts: u32,
        /// What went wrong last; `None` where the agent answered.
        failure: Option<FailureNote>,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailureNote {
    /// The contract's class.
    pub class: FailureClass,
    /// The stable finer name: see [`crate::Reason`].
    pub name: &'static str,
    /// The HTTP status, where there was one.
    pub status: Option<u16>,
}

/// How many cases went which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
