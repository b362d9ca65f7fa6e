//! The concurrency limit: a fixed number, or an adaptive number that follows what the agent can handle. Pure: it takes
//! requests and responses as input, and returns a number.
//!
//! The adaptive limit uses additive increase and multiplicative decrease (Chiu and Jain, 1989), like TCP, with two signals:
//!
//! - Overload: the agent responds with 429 or 503, or does not respond in time. The limit is halved at once.
//! - Queueing: the mean latency of a round is more than twice the baseline. At twice the baseline, half of the requests in
//!   flight are queued, so the limit falls to a little less than half. The queue then drains, and the following rounds
//!   measure the baseline again (the idea of TCP Vegas: Brakmo and Peterson, 1995).
//!
//! A round is as many responses as the limit allows in flight, but at least [`MIN_ROUND`]. A round without a signal raises
//! the limit if the limit was reached: it doubles until the first signal, and grows by one afterwards. After a decrease,
//! requests already in flight are not counted, because they reflect the old limit.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;
use std::time::Duration;

/// The minimum number of responses per round. The mean of fewer is unreliable.
const MIN_ROUND: usize = 8;

/// The initial adaptive limit.
const INITIAL_LIMIT: usize = 4;

/// The default maximum of the adaptive limit.
const DEFAULT_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(63);

/// A round slower than this multiple of the baseline indicates queueing.
const QUEUEING_FACTOR: f64 = 2.0;

/// How fast the baseline follows slower rounds, so that an agent that became permanently slower is not throttled forever.
/// It is divided by the limit: the climb between two decreases takes about as many rounds as the limit is high, and over one
/// climb the baseline must rise by less than the decrease compensates.
const BASELINE_DRIFT: f64 = 0.3;

/// Latencies below this, in seconds, are scheduler and loopback noise.
const NOISE_SECONDS: f64 = 0.002;

/// How many cases run at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concurrency {
    /// A fixed number.
    Fixed(NonZeroUsize),
    /// As many as the agent can handle.
    Auto {
        /// The upper bound.
        max: NonZeroUsize,
    },
}

impl Concurrency {
    /// Returns the maximum number of cases in flight.
    pub const fn max(self) -> NonZeroUsize {
        match self {
            Concurrency::Fixed(max) | Concurrency::Auto { max } => max,
        }
    }

    /// Lowers the maximum to `cases` if it is higher.
    #[must_use]
    pub fn at_most(self, cases: NonZeroUsize) -> Self {
        match self {
            Concurrency::Fixed(max) => Concurrency::Fixed(max.min(cases)),
            Concurrency::Auto { max } => Concurrency::Auto { max: max.min(cases) },
        }
    }
}

impl From<NonZeroUsize> for Concurrency {
    fn from(limit: NonZeroUsize) -> Self {
        Self::Fixed(limit)
    }
}

/// An invalid concurrency.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid concurrency: expected a number from 1, `auto`, or `auto:N` for at most N")]
pub struct ConcurrencyError;

impl FromStr for Concurrency {
    type Err = ConcurrencyError;

    fn from_str(text: &str) -> Result<Self, ConcurrencyError> {
        let number = |text: &str| text.parse().map_err(|_| ConcurrencyError);
        match text.split_once(':') {
            None if text == "auto" => Ok(Self::Auto { max: DEFAULT_MAX }),
            Some(("auto", max)) => Ok(Self::Auto { max: number(max)? }),
            _ => number(text).map(Self::Fixed),
        }
    }
}

impl fmt::Display for Concurrency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Concurrency::Fixed(limit) => write!(f, "{limit}"),
            Concurrency::Auto { max } => write!(f, "auto:{max}"),
        }
    }
}

/// What the end of a request indicates about the load of the agent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Signal {
    /// The agent responded after this time.
    Responded(Duration),
    /// The agent reported overload, or did not respond in time.
    Overloaded,
    /// No information: the agent was not reached.
    NotReached,
}

#[derive(Debug, Clone)]
pub(crate) struct AdaptiveLimit {
    limit: NonZeroUsize,
    max: NonZeroUsize,
    in_flight: usize,
    /// Whether no signal occurred yet. Until then the limit doubles.
    starting: bool,
    /// Requests sent under the old limit, which are not counted when they end.
    stale: usize,
    /// The mean latency without queueing, in seconds.
    baseline: Option<f64>,
    round: Round,
}

#[derive(Debug, Clone, Copy, Default)]
struct Round {
    responses: usize,
    seconds: f64,
    /// The maximum number of requests in flight.
    peak: usize,
}

impl AdaptiveLimit {
    pub(crate) fn new(max: NonZeroUsize) -> Self {
        // `NonZeroUsize::new` returns an option, even for a constant that is not zero.
        let first = NonZeroUsize::MIN.saturating_add(INITIAL_LIMIT - 1);
        Self {
            limit: first.min(max),
            max,
            in_flight: 0,
            starting: true,
            stale: 0,
            baseline: None,
            round: Round::default(),
        }
    }

    pub(crate) const fn limit(&self) -> NonZeroUsize {
        self.limit
    }

    /// Records that a request is sent.
    pub(crate) fn sent(&mut self) {
        self.in_flight += 1;
        self.round.peak = self.round.peak.max(self.in_flight);
    }

    /// Records that a request ended. Returns the new limit if it changed.
    pub(crate) fn ended(&mut self, signal: Signal) -> Option<NonZeroUsize> {
        let before = self.limit;
        self.in_flight = self.in_flight.saturating_sub(1);
        // Counting these would punish the new limit for a queue that the old one built up.
        if self.stale > 0 {
            self.stale -= 1;
            return None;
        }
        match signal {
            Signal::NotReached => {}
            Signal::Overloaded => self.decrease_to(self.limit.get() / 2),
            Signal::Responded(latency) => {
                self.round.responses += 1;
                self.round.seconds += latency.as_secs_f64();
                if self.round.responses >= self.limit.get().max(MIN_ROUND) {
                    self.end_round();
                }
            }
        }
        (self.limit != before).then_some(self.limit)
    }

    fn end_round(&mut self) {
        let round = std::mem::take(&mut self.round);
        // Requests that are still in flight belong to the next round too.
        self.round.peak = self.in_flight;
        // The baseline is a minimum that drifts upwards: it follows faster rounds at once and slower ones gradually.
        let mean = round.seconds / round.responses as f64;
        let drift = BASELINE_DRIFT / self.limit.get() as f64;
        let baseline = self.baseline.map_or(mean, |baseline| mean.min(baseline + (mean - baseline) * drift));
        self.baseline = Some(baseline);
        if mean > baseline * QUEUEING_FACTOR + NOISE_SECONDS {
            // A little less than half, so that the queue drains completely.
            self.decrease_to(self.limit.get() * 2 / 5);
        } else if round.peak >= self.limit.get() {
            // Only a limit that was reached is known to be safe, so an unused one does not grow.
            let step = if self.starting { self.limit.get() } else { 1 };
            self.limit = self.limit.saturating_add(step).min(self.max);
        }
    }

    fn decrease_to(&mut self, limit: usize) {
        self.limit = NonZeroUsize::new(limit).unwrap_or(NonZeroUsize::MIN);
        self.starting = false;
        // A second signal of the same overload must not halve the limit again.
        self.stale = self.in_flight;
        self.round = Round { peak: self.in_flight, ..Round::default() };
    }
}

#[cfg(test)]
#[path = "concurrency_tests.rs"]
mod tests;
