//! The pace of a run: cases in flight ([`super::concurrency`]) and requests per second ([`super::rate`]).
//!
//! The two rules are pure. This module shares them between all cases of a run.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::concurrency::{AdaptiveLimit, Concurrency, Signal};
use super::rate::{Rate, Schedule};

/// The pace of one run, shared by all cases.
#[derive(Debug)]
pub(crate) struct Pace {
    fixed: NonZeroUsize,
    adaptive: Option<Mutex<AdaptiveLimit>>,
    schedule: Option<Mutex<Schedule>>,
}

impl Pace {
    pub(crate) fn new(concurrency: Concurrency, rate: Option<Rate>) -> Self {
        let (fixed, adaptive) = match concurrency {
            Concurrency::Fixed(limit) => (limit, None),
            Concurrency::Auto { max } => (NonZeroUsize::MIN, Some(Mutex::new(AdaptiveLimit::new(max)))),
        };
        Self { fixed, adaptive, schedule: rate.map(|rate| Mutex::new(Schedule::new(rate))) }
    }

    /// Returns how many cases may be in flight now.
    pub(crate) fn limit(&self) -> NonZeroUsize {
        self.adaptive.as_ref().map_or(self.fixed, |adaptive| lock(adaptive).limit())
    }

    /// Reserves the next turn and returns the wait until then, or `None` for no wait. `now` is called only with a rate limit.
    pub(crate) fn turn(&self, now: impl FnOnce() -> Duration) -> Option<Duration> {
        // The clock is read while the lock is held, so turns are reserved in the order of their times.
        let wait = lock(self.schedule.as_ref()?).reserve(now());
        (!wait.is_zero()).then_some(wait)
    }

    /// Records that a request is sent.
    pub(crate) fn sent(&self) {
        if let Some(adaptive) = &self.adaptive {
            lock(adaptive).sent();
        }
    }

    /// Records that a request ended. Returns the new limit if it changed.
    pub(crate) fn ended(&self, signal: Signal) -> Option<NonZeroUsize> {
        lock(self.adaptive.as_ref()?).ended(signal)
    }
}

/// Locks a rule. Neither rule can panic half-way through an update, so a poisoned lock still guards a valid state.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
