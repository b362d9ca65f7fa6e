//! Random attacks on the programs: an example of the tests, in the profile of the tests.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::step::{Failure, Step};

/// How long CI attacks the programs, in minutes.
pub(crate) const SHORT: f64 = 1.0;

/// Runs the attacks. Without a seed, the time of day is one, so that every run tries something else.
pub(crate) fn run(minutes: f64, seed: Option<u64>, kinds: Vec<String>) -> Result<(), Failure> {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let seed = seed.unwrap_or_else(now).to_string();
    let seconds = (minutes * 60.0).round().to_string();
    let example = ["run", "--quiet", "--package", "counterproof-tests", "--example", "torture", "--"];
    let arguments: Vec<String> = [seconds, seed].into_iter().chain(kinds).collect();
    Step::cargo(example).with(&arguments).run()
}
