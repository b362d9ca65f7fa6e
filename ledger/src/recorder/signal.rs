//! How a recorder and its thread wait for each other.

use std::sync::{Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Longest pause between two checks of the deadline.
const SLICE: Duration = Duration::from_millis(20);

/// The state that a recorder shares with its thread.
#[derive(Debug, Default)]
pub(super) struct Signal {
    /// When the thread must end, as soon as that is known.
    deadline: Mutex<Option<Instant>>,
}

impl Signal {
    /// Asks the thread to move all events and to end before a deadline.
    pub(super) fn finish(&self, deadline: Instant, thread: &Thread) {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner) = Some(deadline);
        thread.unpark();
    }

    /// Returns the deadline, if the recorder is finishing.
    pub(super) fn deadline(&self) -> Option<Instant> {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if the deadline has passed.
    pub(super) fn is_over(&self) -> bool {
        self.deadline().is_some_and(|deadline| deadline <= Instant::now())
    }

    /// Waits for a time, or until the pause ends early.
    pub(super) fn pause(&self, time: Duration, pause: Pause) {
        let end = Instant::now() + time;
        loop {
            let now = Instant::now();
            let deadline = self.deadline();
            let is_done = match pause {
                Pause::UntilFinishing => deadline.is_some(),
                Pause::UntilDeadline => deadline.is_some_and(|deadline| deadline <= now),
            };
            if now >= end || is_done {
                return;
            }
            thread::sleep(SLICE.min(end - now));
        }
    }
}

/// When a pause ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pause {
    /// When the recorder finishes.
    UntilFinishing,
    /// When the deadline passes.
    UntilDeadline,
}
