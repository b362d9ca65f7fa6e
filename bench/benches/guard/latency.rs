//! The time of one call after another.

use std::time::{Duration, Instant};

use crate::peer::{Peer, Subject, call};

/// The subjects take turns, so that a change of the machine's load affects all of them.
const ROUNDS: usize = 10;
const CALLS: usize = 2_000;
const WARM_UP: usize = 300;

/// Bytes of arguments of a call.
const SIZE: usize = 100;

/// Measures the time of calls, and prints the difference from the first subject.
pub(crate) fn measure(subjects: &[Subject]) {
    let mut rounds: Vec<Vec<Round>> = subjects.iter().map(|_| Vec::new()).collect();
    let mut peers: Vec<_> = subjects.iter().map(Subject::connect).collect();
    for peer in &mut peers {
        round(peer, WARM_UP);
    }
    for _ in 0..ROUNDS {
        for (peer, rounds) in peers.iter_mut().zip(&mut rounds) {
            rounds.push(round(peer, CALLS));
        }
    }
    println!("time of a call with {SIZE} bytes of arguments; medians of {ROUNDS} rounds of {CALLS} calls, in turns");
    println!("{:<28}{:>10}{:>10}{:>14}{:>14}", "", "p50", "p99", "added p50", "added p99");
    let found: Vec<[Duration; 2]> = rounds.iter().map(|rounds| medians(rounds)).collect();
    for (subject, times) in subjects.iter().zip(&found) {
        let added = |index: usize| us(times[index].saturating_sub(found[0][index]));
        println!("{:<28}{:>10}{:>10}{:>14}{:>14}", subject.name, us(times[0]), us(times[1]), added(0), added(1));
    }
    println!();
}

/// The median and the 99th percentile of one round.
type Round = [Duration; 2];

fn round(peer: &mut Peer, calls: usize) -> Round {
    let (mut times, mut line) = (Vec::with_capacity(calls), Vec::new());
    for number in 0..calls {
        let request = call(number, SIZE) + "\n";
        let started = Instant::now();
        peer.send_bytes(request.as_bytes());
        peer.read(&mut line);
        times.push(started.elapsed());
    }
    times.sort_unstable();
    [50, 99].map(|percent| times[calls * percent / 100])
}

/// The medians over the rounds: a burst of other work on the machine affects a few rounds.
fn medians(rounds: &[Round]) -> [Duration; 2] {
    [0, 1].map(|index| {
        let mut times: Vec<Duration> = rounds.iter().map(|round| round[index]).collect();
        times.sort_unstable();
        times[times.len() / 2]
    })
}

fn us(time: Duration) -> String {
    format!("{:.1} µs", time.as_secs_f64() * 1e6)
}
