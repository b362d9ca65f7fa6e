//! The smallest fall of a suite that the statistics find, from simulated nights.

use fastrand::Rng;

use super::deals::RUNS_A_SIDE;
use crate::repeats::LOST_SHARE;
use crate::statistics::{CaseTallies, CaseTests, LostRuns, LostTest, Tally, Thresholds, judge_with};

/// The nights that are simulated for each fall: the share of them that find it is exact to about 3 points.
const NIGHTS: u64 = 200;

/// The smallest fall that is found with the probability [`Thresholds::power`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmallestFall {
    /// The number of runs a side.
    pub runs: usize,
    /// The fall of the share of solved runs over all cases, in percentage points. `None` if not even an agent that solves nothing
    /// is found.
    pub points: Option<u32>,
}

/// Finds the smallest falls, if the cases are solved as often as in the baseline, and all fall by the same part.
pub(super) fn smallest_falls(solved: &[Tally], thresholds: &Thresholds) -> Vec<SmallestFall> {
    let rates: Vec<f64> = solved.iter().filter_map(|tally| tally.rate()).collect();
    RUNS_A_SIDE
        .iter()
        .map(|runs| SmallestFall { runs: *runs, points: smallest_fall(&rates, *runs, thresholds) })
        .collect()
}

fn smallest_fall(rates: &[f64], runs: usize, thresholds: &Thresholds) -> Option<u32> {
    let mean = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
    // More points than are solved cannot be lost.
    let most = (0..=100).rev().find(|points| f64::from(*points) <= 100.0 * mean).unwrap_or(0);
    let mut tests = CaseTests::default();
    let mut is_found = |points: u32| {
        let kept = 1.0 - f64::from(points) / (100.0 * mean);
        let found = (0..NIGHTS).filter(|night| finds(rates, kept, runs, thresholds, &mut tests, *night)).count();
        found as f64 >= thresholds.power.value() * NIGHTS as f64
    };
    if most == 0 || !is_found(most) {
        return None;
    }
    // The power grows with the fall, so that bisection finds where it is enough.
    let (mut missed, mut found) = (0, most);
    while found - missed > 1 {
        let middle = missed + (found - missed) / 2;
        if is_found(middle) { found = middle } else { missed = middle }
    }
    Some(found)
}

/// Whether a simulated night fails the gate: each case is solved at its rate by the baseline, and at this part of it by new.
fn finds(rates: &[f64], kept: f64, runs: usize, thresholds: &Thresholds, tests: &mut CaseTests, night: u64) -> bool {
    let mut random = Rng::with_seed(night);
    let mut tally = |rate: f64| (0..runs).map(|_| random.f64() < rate).collect::<Tally>();
    let cases: Vec<_> =
        rates.iter().map(|rate| CaseTallies { baseline: tally(*rate), new: tally(rate * kept) }).collect();
    // With one run a side, lost cases have no test and the others the whole level.
    if runs == 1 {
        return judge_with(&cases, thresholds, tests).alarm();
    }
    let alpha = thresholds.alpha.value();
    let lost = |case: &CaseTallies| LostRuns {
        baseline: case.baseline.runs(),
        new: case.new.runs(),
        is_lost: case.baseline.failed == 0 && case.new.passed == 0,
    };
    let lost: Vec<_> = cases.iter().map(lost).collect();
    LostTest::new(&lost).is_some_and(|test| test.is_significant(alpha * LOST_SHARE))
        || judge_with(&cases, &thresholds.with_alpha(alpha * (1.0 - LOST_SHARE)), tests).alarm()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(solved: &[Tally]) -> Vec<Option<u32>> {
        smallest_falls(solved, &Thresholds::default()).into_iter().map(|fall| fall.points).collect()
    }

    #[test]
    fn more_runs_find_smaller_falls() {
        let found: Vec<u32> = points(&[Tally::new(9, 1); 20]).into_iter().map(Option::unwrap).collect();
        assert!(found.is_sorted_by(|fewer, more| fewer > more), "{found:?}");
        assert!(found[0] > 3 * found[3], "{found:?}");
    }

    #[test]
    fn no_fall_of_one_case_is_found_with_one_run() {
        let found = points(&[Tally::new(5, 0)]);
        assert_eq!((found[0], found[3].is_some()), (None, true), "{found:?}");
        assert_eq!(points(&[Tally::new(0, 5); 4]), [None; 4]);
        assert_eq!(points(&[]), [None; 4]);
    }
}
