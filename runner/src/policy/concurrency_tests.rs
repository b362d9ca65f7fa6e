//! The controller against simulated agents, in simulated time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use proptest::prelude::*;

use super::*;
use crate::system::Jitter;

/// An agent that answers `servers` requests at once, each within `service` microseconds or so, lets the others wait, and
/// refuses those beyond `refuse_beyond`.
#[derive(Clone, Copy)]
struct Agent {
    servers: usize,
    service: u64,
    /// The longest service is so many times the shortest.
    spread: f64,
    refuse_beyond: usize,
}

const STEADY: Agent = Agent { servers: 16, service: 100_000, spread: 1.0, refuse_beyond: usize::MAX };

/// What a simulation saw.
struct Seen {
    /// The limit at the end of each request.
    limits: Vec<usize>,
    refused: usize,
    /// Microseconds over all.
    time: u64,
}

impl Seen {
    /// The mean limit over the second half.
    fn settled(&self) -> f64 {
        let half = &self.limits[self.limits.len() / 2..];
        half.iter().sum::<usize>() as f64 / half.len() as f64
    }
}

/// Asks `requests` times, with always as many in flight as the limit allows.
fn simulate(adaptive: &mut AdaptiveLimit, agent: Agent, requests: usize) -> Seen {
    let jitter = Jitter::from_seed(7);
    let mut servers: BinaryHeap<Reverse<u64>> = (0..agent.servers).map(|_| Reverse(0)).collect();
    // Ends of requests in flight: when, when they began, and whether they were refused.
    let mut in_flight: BinaryHeap<Reverse<(u64, u64, bool)>> = BinaryHeap::new();
    let (mut now, mut sent) = (0, 0);
    let mut seen = Seen { limits: Vec::new(), refused: 0, time: 0 };
    while seen.limits.len() < requests {
        while sent < requests && in_flight.len() < adaptive.limit().get() {
            adaptive.sent();
            sent += 1;
            if in_flight.len() >= agent.refuse_beyond {
                in_flight.push(Reverse((now + 1_000, now, true)));
                continue;
            }
            let Reverse(free) = servers.pop().unwrap();
            let service = Duration::from_micros(agent.service).mul_f64(1.0 + (agent.spread - 1.0) * jitter.fraction());
            let end = now.max(free) + u64::try_from(service.as_micros()).unwrap();
            servers.push(Reverse(end));
            in_flight.push(Reverse((end, now, false)));
        }
        let Reverse((end, began, refused)) = in_flight.pop().unwrap();
        now = end;
        seen.refused += usize::from(refused);
        let signal = if refused { Signal::Overloaded } else { Signal::Responded(Duration::from_micros(end - began)) };
        adaptive.ended(signal);
        seen.limits.push(adaptive.limit().get());
    }
    seen.time = now;
    seen
}

fn adaptive(max: usize) -> AdaptiveLimit {
    AdaptiveLimit::new(NonZeroUsize::new(max).unwrap())
}

#[test]
fn an_agent_that_takes_everything_is_asked_as_much_as_allowed() {
    let seen = simulate(&mut adaptive(64), Agent { servers: 1000, ..STEADY }, 2_000);
    assert_eq!(seen.limits.last(), Some(&64));
    assert!(seen.limits[200] >= 32, "it gets there soon: {}", seen.limits[200]);
}

#[test]
fn latencies_that_differ_by_nature_do_not_hold_it_back_for_long() {
    let seen = simulate(&mut adaptive(64), Agent { servers: 1000, spread: 20.0, ..STEADY }, 10_000);
    assert!(seen.settled() > 32.0, "{}", seen.settled());
}

#[test]
fn a_line_is_kept_short_and_the_agent_busy() {
    let seen = simulate(&mut adaptive(1000), STEADY, 20_000);
    assert!((12.0..40.0).contains(&seen.settled()), "{}", seen.settled());
    let least = 20_000 * STEADY.service / STEADY.servers as u64;
    assert!(seen.time < least + least / 10, "at least 90 % of what the agent can do: {} of {least}", seen.time);
}

#[test]
fn a_wide_agent_with_uneven_answers_is_kept_busy_too() {
    let agent = Agent { servers: 100, spread: 4.0, ..STEADY };
    let seen = simulate(&mut adaptive(1000), agent, 100_000);
    assert!((80.0..250.0).contains(&seen.settled()), "{}", seen.settled());
}

#[test]
fn refusals_halve_the_limit_once_and_it_comes_back() {
    let seen = simulate(&mut adaptive(1000), Agent { servers: 1000, refuse_beyond: 20, ..STEADY }, 20_000);
    assert!((8.0..=21.0).contains(&seen.settled()), "{}", seen.settled());
    assert!(seen.refused < 20_000 / 20, "{} refused", seen.refused);
}

#[test]
fn it_recovers_when_the_agent_does() {
    let mut adaptive = adaptive(64);
    let wide = Agent { servers: 1000, ..STEADY };
    simulate(&mut adaptive, Agent { refuse_beyond: 2, ..wide }, 500);
    assert!(adaptive.limit().get() <= 4);
    simulate(&mut adaptive, wide, 4_000);
    assert_eq!(adaptive.limit().get(), 64);
}

#[test]
fn an_agent_that_became_slower_for_good_is_not_throttled_for_ever() {
    let mut adaptive = adaptive(32);
    let wide = Agent { servers: 1000, ..STEADY };
    simulate(&mut adaptive, wide, 1_000);
    simulate(&mut adaptive, Agent { service: 500_000, ..wide }, 4_000);
    assert_eq!(adaptive.limit().get(), 32);
}

#[test]
fn a_limit_that_nobody_uses_does_not_grow() {
    let mut adaptive = adaptive(64);
    for _ in 0..1_000 {
        adaptive.sent();
        adaptive.ended(Signal::Responded(Duration::from_millis(1)));
    }
    assert_eq!(adaptive.limit().get(), INITIAL_LIMIT);
}

#[test]
fn a_concurrency_is_read_as_a_number_or_as_auto() {
    for (text, shown) in [("1", "1"), ("16", "16"), ("auto", "auto:64"), ("auto:8", "auto:8")] {
        assert_eq!(text.parse::<Concurrency>().map(|value| value.to_string()).as_deref(), Ok(shown));
    }
    for text in ["", "0", "-1", "auto:0", "auto:", "max", "8:auto"] {
        assert_eq!(text.parse::<Concurrency>(), Err(ConcurrencyError), "{text:?}");
    }
}

proptest! {
    #[test]
    fn the_limit_stays_within_its_bounds(max in 1..100_usize, signals in prop::collection::vec(0..4_u64, 0..500)) {
        let mut adaptive = adaptive(max);
        for signal in signals {
            adaptive.sent();
            let signal = match signal {
                0 => Signal::Overloaded,
                1 => Signal::NotReached,
                millis => Signal::Responded(Duration::from_millis(millis)),
            };
            adaptive.ended(signal);
            prop_assert!((1..=max).contains(&adaptive.limit().get()));
        }
    }
}
