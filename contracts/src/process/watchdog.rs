//! Stops a running command: at its time limit, at its output limit, or when it is cancelled.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use counterproof_safe_run::Signals;

use super::{Cancellation, StopReason};

/// The signal number of KILL.
const KILL: u8 = 9;

/// The signal number of TERM.
const TERM: u8 = 15;

/// The end of one command, as its watchdog sees it.
#[derive(Debug)]
pub(super) struct Watchdog<'a> {
    pub(super) cancellation: &'a Cancellation,
    pub(super) signals: &'a Signals,
    /// `None` if no clock reaches the time limit.
    pub(super) deadline: Option<Instant>,
    has_ended: AtomicBool,
}

impl<'a> Watchdog<'a> {
    pub(super) fn new(cancellation: &'a Cancellation, signals: &'a Signals, deadline: Option<Instant>) -> Self {
        Self { cancellation, signals, deadline, has_ended: AtomicBool::new(false) }
    }

    /// Waits for the end of the command, and stops the command if something else comes first. Returns what came first.
    pub(super) fn watch(&self) -> Option<StopReason> {
        let has_ended = || self.has_ended.load(Ordering::Relaxed);
        let is_cancelled = self.cancellation.wait_until(self.deadline, has_ended);
        if has_ended() {
            return None;
        }
        self.signals.send(TERM);
        Some(if is_cancelled { StopReason::Cancelled } else { StopReason::TimedOut })
    }

    /// Returns a guard that ends [`Self::watch`] when it is dropped, also if recording the command panics.
    pub(super) fn guard(&self) -> CommandGuard<'_> {
        CommandGuard(self)
    }
}

/// Held while the command runs.
#[derive(Debug)]
pub(super) struct CommandGuard<'a>(&'a Watchdog<'a>);

impl Drop for CommandGuard<'_> {
    fn drop(&mut self) {
        self.0.cancellation.wake(|| self.0.has_ended.store(true, Ordering::Relaxed));
    }
}

/// Counts the output of a command, and kills the command beyond a limit.
#[derive(Debug)]
pub(super) struct OutputMeter<'a> {
    signals: &'a Signals,
    /// `None` after the limit was exceeded.
    left: Option<u64>,
}

impl<'a> OutputMeter<'a> {
    pub(super) fn new(signals: &'a Signals, limit: u64) -> Self {
        Self { signals, left: Some(limit) }
    }

    pub(super) fn count(&mut self, bytes: usize) {
        let Some(left) = self.left else { return };
        self.left = left.checked_sub(bytes as u64);
        if self.left.is_none() {
            self.signals.send(KILL);
        }
    }

    pub(super) fn is_exceeded(&self) -> bool {
        self.left.is_none()
    }
}
