//! The clock that the caller passes in. The runner reads the time from nothing else.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

/// One reading of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The time of day.
    pub at: Timestamp,
    /// Time since the clock was created. Unlike the time of day, it never decreases.
    pub elapsed: Duration,
}

impl Moment {
    /// Returns the time of day in ISO 8601, in UTC with milliseconds.
    pub fn iso(&self) -> String {
        format!("{:.3}", self.at)
    }
}

/// A source of time.
pub trait Clock: Send + Sync {
    /// Reads the clock once.
    fn read(&self) -> Moment;

    /// Notifies the clock that the runner waited with a timer. A real clock advances without this.
    fn waited(&self, _span: Duration) {}
}

/// The system clock.
#[derive(Debug, Clone)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// Creates a clock whose elapsed time starts now.
    pub fn start() -> Self {
        Self { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn read(&self) -> Moment {
        Moment { at: Timestamp::now(), elapsed: self.start.elapsed() }
    }
}

/// A clock that advances by one step with each reading, and by each reported wait. Two runs that do the same work read the
/// same times, so their files are byte-identical.
#[derive(Debug)]
pub struct SteppingClock {
    start: Timestamp,
    step: Duration,
    elapsed_micros: AtomicU64,
}

impl SteppingClock {
    /// Creates a clock whose first reading is `start`. Steps are rounded down to whole microseconds.
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

/// Returns the whole milliseconds of a duration, rounded down.
pub(crate) fn whole_millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stepping_clock_advances_with_readings_and_with_waits() {
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
