//! The pace of a run: cases in flight ([`super::concurrency`]) and requests per second ([`Rate`]).
//!
//! The two rules are pure. This module shares them between all cases of a run.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::concurrency::{AdaptiveLimit, Concurrency, Signal};

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
            // The fixed number is not used: the adaptive limit decides.
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

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Neither rule can panic half-way through an update, so a poisoned lock still guards a valid state.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A positive number of requests per second or per minute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    requests: f64,
    per: Unit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Second,
    Minute,
}

impl Rate {
    /// Returns the part of each of this many processes that together keep the rate.
    #[must_use]
    pub fn shared_by(self, processes: u32) -> Self {
        Self { requests: self.requests / f64::from(processes.max(1)), ..self }
    }

    /// Returns the time between the starts of two requests.
    pub fn interval(&self) -> Duration {
        let span = match self.per {
            Unit::Second => 1.0,
            Unit::Minute => 60.0,
        };
        // A rate above the resolution of the clock does not limit. A rate below its range never reaches the second request.
        Duration::try_from_secs_f64(span / self.requests).unwrap_or(Duration::MAX)
    }
}

/// An invalid rate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid rate: expected a number of requests per second or minute, such as 5/s, 0.5/s or 100/m")]
pub struct RateError;

impl FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        let (number, unit) = text.split_once('/').ok_or(RateError)?;
        let per = match unit {
            "s" => Unit::Second,
            "m" | "min" => Unit::Minute,
            _ => return Err(RateError),
        };
        let requests: f64 = number.parse().map_err(|_| RateError)?;
        if requests.is_finite() && requests > 0.0 { Ok(Self { requests, per }) } else { Err(RateError) }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.per {
            Unit::Second => "s",
            Unit::Minute => "m",
        };
        write!(f, "{}/{unit}", self.requests)
    }
}

/// Assigns a turn to each request. Unused time does not accumulate into bursts, because the agent's own limits often apply
/// to windows that the runner does not know.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    interval: Duration,
    next: Duration,
}

impl Schedule {
    pub(crate) fn new(rate: Rate) -> Self {
        Self { interval: rate.interval(), next: Duration::ZERO }
    }

    /// Reserves the next turn, and returns the wait until then.
    pub(crate) fn reserve(&mut self, now: Duration) -> Duration {
        let turn = self.next.max(now);
        // Counted from the turn and not from the last reservation, so a pause leaves no credit for a burst.
        self.next = turn.saturating_add(self.interval);
        turn.saturating_sub(now)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_rate_is_parsed_with_its_unit() {
        let interval = |text: &str| text.parse::<Rate>().unwrap().interval();
        assert_eq!(interval("5/s"), Duration::from_millis(200));
        assert_eq!(interval("0.5/s"), Duration::from_secs(2));
        assert_eq!(interval("120/m"), Duration::from_millis(500));
        assert_eq!("120/min".parse::<Rate>().unwrap().to_string(), "120/m");
        assert_eq!(interval("1e-300/s"), Duration::MAX);
        for text in ["", "5", "/s", "0/s", "-1/s", "5/h", "inf/s", "NaN/s", "5 /s"] {
            assert_eq!(text.parse::<Rate>(), Err(RateError), "{text:?}");
        }
    }

    #[test]
    fn simultaneous_requests_are_spaced_evenly() {
        let mut schedule = Schedule::new("10/s".parse().unwrap());
        let now = Duration::from_secs(7);
        let waits: Vec<_> = (0..4).map(|_| schedule.reserve(now).as_millis()).collect();
        assert_eq!(waits, [0, 100, 200, 300]);
        // An idle second allows no burst.
        let waits: Vec<_> = (0..2).map(|_| schedule.reserve(Duration::from_secs(9)).as_millis()).collect();
        assert_eq!(waits, [0, 100]);
    }

    proptest! {
        #[test]
        fn no_window_exceeds_the_rate(gaps in prop::collection::vec(0..400_u64, 2..60)) {
            let rate: Rate = "5/s".parse().unwrap();
            let mut schedule = Schedule::new(rate);
            let mut now = Duration::ZERO;
            let mut turns = Vec::new();
            for gap in gaps {
                now += Duration::from_millis(gap);
                turns.push(now + schedule.reserve(now));
            }
            prop_assert!(turns.windows(2).all(|pair| pair[0] + rate.interval() <= pair[1]));
        }
    }
}
