//! How many cases may be in flight: a fixed number, or one that follows what the agent can take. Pure: it is told of
//! requests and answers, and says a number.
//!
//! The controller is additive increase, multiplicative decrease (Chiu and Jain, 1989), as TCP has it, with two signals:
//!
//! - The agent says that it is too much (429 or 503), or does not answer in time: the limit is halved at once.
//! - Requests wait in line: the mean latency of a round is more than twice the baseline. At twice the baseline half of what
//!   is in flight waits, so the limit falls to a little less than half: there is no line then, and the rounds that follow
//!   measure the baseline anew (the idea of TCP Vegas: Brakmo and Peterson, 1995).
//!
//! A round is as many answers as the limit allows in flight, but at least [`LEAST_ROUND`]. One without either signal raises
//! the limit, where it was used up at all: by doubling up to the first signal, by one after it. After a decrease, the
//! requests that were then in flight are not counted: they tell of the old limit.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;
use std::time::Duration;

/// Fewer answers than this are no round: their mean says little.
const LEAST_ROUND: usize = 8;

/// Where the adaptive limit starts.
const FIRST_LIMIT: usize = 4;

/// How far the adaptive limit goes where nothing else is said.
const DEFAULT_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(63);

/// A round slower than this many times the baseline has requests waiting in line.
const QUEUED: f64 = 2.0;

/// How fast the baseline follows slower rounds, so that an agent which became slower for good is not throttled for ever. It
/// is divided by the limit: the climb from one decrease to the next takes as many rounds as the limit is high, and over one
/// climb the baseline must move by less than the decrease makes good.
const BASELINE_DRIFT: f64 = 0.3;

/// Latencies below this, in seconds, are the noise of schedulers and loopback.
const NOISE: f64 = 0.002;

/// How many cases are asked at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concurrency {
    /// So many.
    Fixed(NonZeroUsize),
    /// As many as the agent takes.
    Auto {
        /// But never more than this.
        max: NonZeroUsize,
    },
}

impl Concurrency {
    /// The most cases that may be in flight.
    pub const fn max(self) -> NonZeroUsize {
        match self {
            Concurrency::Fixed(max) | Concurrency::Auto { max } => max,
        }
    }
}

impl From<NonZeroUsize> for Concurrency {
    fn from(limit: NonZeroUsize) -> Self {
        Self::Fixed(limit)
    }
}

/// A concurrency that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a concurrency is a number from 1 on, `auto`, or `auto:N` for at most N")]
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

/// What the end of a request says of the agent's load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Signal {
    /// It responded, after this time.
    Responded(Duration),
    /// It said that it is too much, or did not respond in time.
    Overloaded,
    /// Nothing: there was no agent to respond.
    Nothing,
}

/// The limit that follows the agent.
#[derive(Debug, Clone)]
pub(crate) struct Adaptive {
    limit: NonZeroUsize,
    max: NonZeroUsize,
    in_flight: usize,
    /// True up to the first signal: the limit doubles.
    starting: bool,
    /// Requests that went out under the old limit, and are not counted when they end.
    stale: usize,
    /// Mean latency in seconds without a line.
    baseline: Option<f64>,
    round: Round,
}

#[derive(Debug, Clone, Copy, Default)]
struct Round {
    answers: usize,
    seconds: f64,
    /// The most requests that were in flight.
    peak: usize,
}

impl Adaptive {
    pub(crate) fn new(max: NonZeroUsize) -> Self {
        let first = NonZeroUsize::MIN.saturating_add(FIRST_LIMIT - 1);
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

    /// A request goes out.
    pub(crate) fn sent(&mut self) {
        self.in_flight += 1;
        self.round.peak = self.round.peak.max(self.in_flight);
    }

    /// A request came to its end. Gives the new limit where it moved.
    pub(crate) fn ended(&mut self, signal: Signal) -> Option<NonZeroUsize> {
        let before = self.limit;
        self.in_flight = self.in_flight.saturating_sub(1);
        if self.stale > 0 {
            self.stale -= 1;
            return None;
        }
        match signal {
            Signal::Nothing => {}
            Signal::Overloaded => self.fall_to(self.limit.get() / 2),
            Signal::Responded(latency) => {
                self.round.answers += 1;
                self.round.seconds += latency.as_secs_f64();
                if self.round.answers >= self.limit.get().max(LEAST_ROUND) {
                    self.end_round();
                }
            }
        }
        (self.limit != before).then_some(self.limit)
    }

    fn end_round(&mut self) {
        let round = std::mem::take(&mut self.round);
        self.round.peak = self.in_flight;
        let mean = round.seconds / round.answers as f64;
        let drift = BASELINE_DRIFT / self.limit.get() as f64;
        let baseline = self.baseline.map_or(mean, |baseline| mean.min(baseline + (mean - baseline) * drift));
        self.baseline = Some(baseline);
        if mean > baseline * QUEUED + NOISE {
            self.fall_to(self.limit.get() * 2 / 5);
        } else if round.peak >= self.limit.get() {
            let step = if self.starting { self.limit.get() } else { 1 };
            self.limit = self.limit.saturating_add(step).min(self.max);
        }
    }

    fn fall_to(&mut self, limit: usize) {
        self.limit = NonZeroUsize::new(limit).unwrap_or(NonZeroUsize::MIN);
        self.starting = false;
        self.stale = self.in_flight;
        self.round = Round { peak: self.in_flight, ..Round::default() };
    }
}

#[cfg(test)]
#[path = "concurrency_tests.rs"]
mod tests;
