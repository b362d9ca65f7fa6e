//! The controller against simulated agents, in simulated time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use proptest::prelude::*;

use super::*;
use crate::environment::Jitter;

/// An agent that answers `servers` requests at once, each within about `service` microseconds. It queues the others, and
/// rejects a request if `reject_beyond` are in flight.
#[derive(Clone, Copy)]
struct Agent {
    servers: usize,
    service: u64,
    /// The ratio of the longest to the shortest service time.
    spread: f64,
    reject_beyond: usize,
}

const STEADY: Agent = Agent { servers: 16, service: 100_000, spread: 1.0, reject_beyond: usize::MAX };

/// The result of a simulation.
struct Simulation {
    /// The limit at the end of each request.
    limits: Vec<usize>,
    rejected: usize,
    /// The total time in microseconds.
    time: u64,
}

impl Simulation {
    /// Returns the mean limit over the second half.
    fn mean_limit(&self) -> f64 {
        let half = &self.limits[self.limits.len() / 2..];
        half.iter().sum::<usize>() as f64 / half.len() as f64
    }
}

/// Sends `requests` requests, with as many in flight as the limit allows.
fn simulate(adaptive: &mut AdaptiveLimit, agent: Agent, requests: usize) -> Simulation {
    let jitter = Jitter::from_seed(7);
    let mut servers: BinaryHeap<Reverse<u64>> = (0..agent.servers).map(|_| Reverse(0)).collect();
    // Requests in flight: their end, their start, and whether they were rejected.
    let mut in_flight: BinaryHeap<Reverse<(u64, u64, bool)>> = BinaryHeap::new();
    let (mut now, mut sent) = (0, 0);
    let mut simulation = Simulation { limits: Vec::new(), rejected: 0, time: 0 };
    while simulation.limits.len() < requests {
        while sent < requests && in_flight.len() < adaptive.limit().get() {
            adaptive.sent();
            sent += 1;
            if in_flight.len() >= agent.reject_beyond {
                in_flight.push(Reverse((now + 1_000, now, true)));
                continue;
            }
            let Reverse(free) = servers.pop().unwrap();
            let service = Duration::from_micros(agent.service).mul_f64(1.0 + (agent.spread - 1.0) * jitter.fraction());
            let end = now.max(free) + u64::try_from(service.as_micros()).unwrap();
            servers.push(Reverse(end));
            in_flight.push(Reverse((end, now, false)));
        }
        let Reverse((end, began, rejected)) = in_flight.pop().unwrap();
        now = end;
        simulation.rejected += usize::from(rejected);
        let signal = if rejected { Signal::Overloaded } else { Signal::Responded(Duration::from_micros(end - began)) };
        adaptive.ended(signal);
        simulation.limits.push(adaptive.limit().get());
    }
    simulation.time = now;
    simulation
}

fn adaptive(max: usize) -> AdaptiveLimit {
    AdaptiveLimit::new(NonZeroUsize::new(max).unwrap())
}

#[test]
fn the_limit_reaches_its_maximum_if_the_agent_handles_every_request() {
    let simulation = simulate(&mut adaptive(64), Agent { servers: 1000, ..STEADY }, 2_000);
    assert_eq!(simulation.limits.last(), Some(&64));
    assert!(simulation.limits[200] >= 32, "the limit grows quickly: {}", simulation.limits[200]);
}

#[test]
fn varying_latencies_throttle_the_limit_only_briefly() {
    let simulation = simulate(&mut adaptive(64), Agent { servers: 1000, spread: 20.0, ..STEADY }, 10_000);
    assert!(simulation.mean_limit() > 32.0, "{}", simulation.mean_limit());
}

#[test]
fn the_queue_stays_short_and_the_agent_busy() {
    let simulation = simulate(&mut adaptive(1000), STEADY, 20_000);
    assert!((12.0..40.0).contains(&simulation.mean_limit()), "{}", simulation.mean_limit());
    let least = 20_000 * STEADY.service / STEADY.servers as u64;
    assert!(
        simulation.time < least + least / 10,
        "at least 90 % of what the agent can do: {} of {least}",
        simulation.time
    );
}

#[test]
fn an_agent_with_many_servers_and_uneven_latencies_stays_busy() {
    let agent = Agent { servers: 100, spread: 4.0, ..STEADY };
    let simulation = simulate(&mut adaptive(1000), agent, 100_000);
    assert!((80.0..250.0).contains(&simulation.mean_limit()), "{}", simulation.mean_limit());
}

#[test]
fn rejections_halve_the_limit_once_and_it_recovers() {
    let simulation = simulate(&mut adaptive(1000), Agent { servers: 1000, reject_beyond: 20, ..STEADY }, 20_000);
    assert!((8.0..=21.0).contains(&simulation.mean_limit()), "{}", simulation.mean_limit());
    assert!(simulation.rejected < 20_000 / 20, "{} rejected", simulation.rejected);
}

#[test]
fn the_limit_recovers_when_the_agent_does() {
    let mut adaptive = adaptive(64);
    let wide = Agent { servers: 1000, ..STEADY };
    simulate(&mut adaptive, Agent { reject_beyond: 2, ..wide }, 500);
    assert!(adaptive.limit().get() <= 4);
    simulate(&mut adaptive, wide, 4_000);
    assert_eq!(adaptive.limit().get(), 64);
}

#[test]
fn a_permanently_slower_agent_is_not_throttled_forever() {
    let mut adaptive = adaptive(32);
    let wide = Agent { servers: 1000, ..STEADY };
    simulate(&mut adaptive, wide, 1_000);
    simulate(&mut adaptive, Agent { service: 500_000, ..wide }, 4_000);
    assert_eq!(adaptive.limit().get(), 32);
}

#[test]
fn an_unused_limit_does_not_grow() {
    let mut adaptive = adaptive(64);
    for _ in 0..1_000 {
        adaptive.sent();
        adaptive.ended(Signal::Responded(Duration::from_millis(1)));
    }
    assert_eq!(adaptive.limit().get(), INITIAL_LIMIT);
}

#[test]
fn a_concurrency_is_a_number_or_auto() {
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
