//! Time, passed in: the runner reads no clock of its own. How long to wait is not decided here.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

/// One reading of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The time of day.
    pub at: Timestamp,
    /// Time since the clock was made; unlike the time of day it never goes back.
    pub elapsed: Duration,
}

impl Moment {
    /// The time of day in ISO 8601, in UTC and to the millisecond.
    pub fn iso(&self) -> String {
        format!("{:.3}", self.at)
    }
}

/// Where the runner reads the time.
pub trait Clock: Send + Sync {
    /// Reads the clock once.
    fn read(&self) -> Moment;

    /// Tells the clock that the runner has waited by a timer of its own. A real clock has noticed.
    fn waited(&self, _span: Duration) {}
}

/// The clock of the system.
#[derive(Debug, Clone)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// A clock whose elapsed time starts now.
    pub fn start() -> Self {
        Self { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn read(&self) -> Moment {
        Moment { at: Timestamp::now(), elapsed: self.start.elapsed() }
    }
}

/// A clock that moves by one step with each reading, and by the spans that it is told of: two runs that do the same read
/// the same times, so their files have the same bytes.
#[derive(Debug)]
pub struct SteppingClock {
    start: Timestamp,
    step: Duration,
    elapsed_micros: AtomicU64,
}

impl SteppingClock {
    /// A clock that reads `start` first. Steps are counted in whole microseconds.
    pub fn new(start: Timestamp, step: Duration) -> Self {
        Self { start, step, elapsed_micros: AtomicU64::new(0) }
    }

    fn advance(&self, span: Duration) -> Duration {
        let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(self.elapsed_micros.fetch_add(micros, Ordering::Relaxed))
    }
}

impl Clock for SteppingClock {
    fn read(&self) -> Moment {
        let elapsed = self.advance(self.step);
        let span = SignedDuration::try_from(elapsed).unwrap_or(SignedDuration::MAX);
        Moment { at: self.start.checked_add(span).unwrap_or(Timestamp::MAX), elapsed }
    }

    fn waited(&self, span: Duration) {
        self.advance(span);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stepping_clock_moves_with_readings_and_with_waits() {
        let clock = SteppingClock::new("2026-01-05T09:00:00Z".parse().unwrap(), Duration::from_millis(2));
        assert_eq!(clock.read().iso(), "2026-01-05T09:00:00.000Z");
        clock.waited(Duration::from_secs(1));
        assert_eq!(clock.read().iso(), "2026-01-05T09:00:01.002Z");
        assert_eq!(clock.read().elapsed, Duration::from_millis(1004));
    }

    #[test]
    fn the_system_clock_counts_from_its_start() {
        let clock = SystemClock::start();
        let (first, second) = (clock.read(), clock.read());
        assert!(first.elapsed <= second.elapsed);
    }
}
