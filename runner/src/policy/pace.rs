//! How fast an agent is asked: how many cases at once ([`super::concurrency`]), and how many requests a second ([`super::rate`]). The rules are
//! pure; here they are shared by all cases of a run.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::concurrency::{Adaptive, Concurrency, Signal};
use super::rate::{Rate, Schedule};

/// The pace of one run.
#[derive(Debug)]
pub(crate) struct Pace {
    start: NonZeroUsize,
    adaptive: Option<Mutex<Adaptive>>,
    schedule: Option<Mutex<Schedule>>,
}

impl Pace {
    pub(crate) fn new(concurrency: Concurrency, rate: Option<Rate>) -> Self {
        let (start, adaptive) = match concurrency {
            Concurrency::Fixed(limit) => (limit, None),
            Concurrency::Auto { max } => (NonZeroUsize::MIN, Some(Mutex::new(Adaptive::new(max)))),
        };
        Self { start, adaptive, schedule: rate.map(|rate| Mutex::new(Schedule::new(rate))) }
    }

    /// How many cases may be in flight now.
    pub(crate) fn limit(&self) -> NonZeroUsize {
        self.adaptive.as_ref().map_or(self.start, |adaptive| lock(adaptive).limit())
    }

    /// How long a request has to wait for its turn, which it thereby takes; `now` is read only where there is a rate.
    pub(crate) fn turn(&self, now: impl FnOnce() -> Duration) -> Option<Duration> {
        let wait = lock(self.schedule.as_ref()?).reserve(now());
        (!wait.is_zero()).then_some(wait)
    }

    /// A request goes out.
    pub(crate) fn sent(&self) {
        if let Some(adaptive) = &self.adaptive {
            lock(adaptive).sent();
        }
    }

    /// A request came to its end. Gives the new limit where it moved.
    pub(crate) fn ended(&self, signal: Signal) -> Option<NonZeroUsize> {
        lock(self.adaptive.as_ref()?).ended(signal)
    }
}

/// Neither rule can be left half-way, so a lock that a panic left behind is as good as any.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
