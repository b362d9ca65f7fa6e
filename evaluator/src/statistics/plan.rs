//! Estimates the number of further runs that a case needs to be decided.

use std::collections::BTreeMap;

use counterproof_artifact::Sides;

use super::exact::Distribution;
use super::exact::fisher;
use super::suite_decision::Thresholds;
use super::suite_decision::{CaseJudgement, fell_enough, steady};
use super::tally::is_at_most;
use super::tally::{CaseTallies, Tally};

/// The number of further runs per side that decide a case with the probability [`Thresholds::power`], if both sides keep their
/// observed pass rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoreRuns {
    /// This number of runs is enough.
    Enough(u32),
    /// No number of runs up to this one is enough.
    NotUpTo(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Growth {
    BothSides,
    BaselineAlone,
}

/// Estimates numbers of further runs, and caches them: cases with the same tallies are computed once.
#[derive(Debug)]
pub struct Planner<'a> {
    thresholds: &'a Thresholds,
    known: BTreeMap<(CaseTallies, u64, Growth), MoreRuns>,
}

impl<'a> Planner<'a> {
    /// Creates a planner. Expects the thresholds with which the cases were judged.
    pub const fn new(thresholds: &'a Thresholds) -> Self {
        Self { thresholds, known: BTreeMap::new() }
    }

    /// Estimates the number of further runs for a judged case. `None` if it is decided, or if a side has no run.
    pub fn more_runs(&mut self, case: &CaseJudgement) -> Option<MoreRuns> {
        self.estimate(case, Growth::BothSides)
    }

    /// The same, if only the baseline runs further.
    pub fn more_baseline_runs(&mut self, case: &CaseJudgement) -> Option<MoreRuns> {
        self.estimate(case, Growth::BaselineAlone)
    }

    fn estimate(&mut self, case: &CaseJudgement, growth: Growth) -> Option<MoreRuns> {
        let (Some(p), Some(corrected), false) = (case.p, case.corrected, case.is_decided()) else { return None };
        // The level for the uncorrected p-value, assuming that the other cases stay as they are and the correction factor with
        // them.
        let left = self.thresholds.alpha.value() * if corrected > p { p / corrected } else { 1.0 };
        // Floats cannot be map keys; equal levels have equal bits.
        let key = (case.tallies, left.to_bits(), growth);
        if let Some(known) = self.known.get(&key) {
            return Some(*known);
        }
        let more_runs = self.search(case.tallies, left, growth);
        self.known.insert(key, more_runs);
        Some(more_runs)
    }

    /// Finds the number by doubling and bisection.
    fn search(&self, case: CaseTallies, level: f64, growth: Growth) -> MoreRuns {
        // The probability of a decision grows with the runs except for small steps back, since counts are discrete. The result
        // is thus the smallest sufficient number, or close to it.
        let cap = self.thresholds.more_runs_up_to;
        let enough = |more: u32| {
            let new = if growth == Growth::BothSides { more } else { 0 };
            self.chance_of_decision(case, Sides { baseline: more, new }, level) >= self.thresholds.power.value()
        };
        let (mut too_few, mut more) = (0, 1.min(cap));
        while more > too_few && !enough(more) {
            (too_few, more) = (more, more.saturating_mul(2).min(cap));
        }
        if more == too_few {
            return MoreRuns::NotUpTo(cap);
        }
        while more - too_few > 1 {
            let middle = too_few + (more - too_few) / 2;
            if enough(middle) { more = middle } else { too_few = middle }
        }
        MoreRuns::Enough(more)
    }

    /// The probability that the case is decided, as a regression or as steady, after `more` further runs.
    fn chance_of_decision(&self, case: CaseTallies, more: Sides<u32>, level: f64) -> f64 {
        let (old, new) = (further(case.baseline, more.baseline), further(case.new, more.new));
        let mut decided = 0.0;
        // With more passes on baseline, both bounds on the passes of new can only grow: the one below which it is a regression
        // and the one above which it is steady. They therefore continue from the previous row.
        let (mut worse, mut fine) = (0, 0);
        for (baseline, of_baseline) in &old {
            let with = |index: usize| CaseTallies { baseline: *baseline, new: new[index].0 };
            let is_worse = |case| fell_enough(case, self.thresholds) && is_at_most(fisher(case), level);
            while worse < new.len() && is_worse(with(worse)) {
                worse += 1;
            }
            while fine < new.len() && !steady(with(fine), self.thresholds) {
                fine += 1;
            }
            let of_new: f64 = new[..worse].iter().chain(&new[fine.max(worse)..]).map(|(_, mass)| mass).sum();
            decided += of_baseline * of_new;
        }
        decided
    }
}

/// The possible tallies of a side after further runs, with their probabilities, in ascending order of passes.
fn further(tally: Tally, more: u32) -> Vec<(Tally, f64)> {
    // A side that always passed or always failed stays so: the binomial distribution needs a rate above 0 and below 1.
    let rate = tally.rate().unwrap_or(0.5);
    let after = |passed: u32| Tally::new(tally.passed + passed, tally.failed + (more - passed));
    if tally.failed == 0 {
        return vec![(after(more), 1.0)];
    }
    if tally.passed == 0 {
        return vec![(after(0), 1.0)];
    }
    (0..=more).zip(Distribution::binomial(more, rate).iter()).map(|(passed, (_, mass))| (after(passed), mass)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::suite_decision::judge;

    fn more_runs(passed: u32, failed: u32, new_passed: u32, new_failed: u32) -> MoreRuns {
        let case = CaseTallies { baseline: Tally::new(passed, failed), new: Tally::new(new_passed, new_failed) };
        let thresholds = Thresholds::default();
        Planner::new(&thresholds).search(case, 0.05, Growth::BothSides)
    }

    #[test]
    fn a_case_of_a_suite_needs_more_runs_than_a_single_case() {
        let case = CaseTallies { baseline: Tally::new(5, 0), new: Tally::new(3, 2) };
        let flaky = CaseTallies { baseline: Tally::new(3, 2), new: Tally::new(3, 2) };
        let thresholds = Thresholds::default();
        let more_runs = |cases: &[CaseTallies]| {
            let judged = judge(cases, &thresholds);
            match Planner::new(&thresholds).more_runs(&judged.cases[0]) {
                Some(MoreRuns::Enough(more)) => more,
                other => panic!("{other:?}"),
            }
        };
        let mut suite = vec![flaky; 30];
        suite[0] = case;
        assert!(more_runs(&[case]) < more_runs(&suite));
        let decided = judge(&[CaseTallies { baseline: Tally::new(10, 0), new: Tally::new(2, 8) }], &thresholds);
        assert_eq!(Planner::new(&thresholds).more_runs(&decided.cases[0]), None);
    }

    #[test]
    fn a_case_that_always_passes_is_steady_after_seven_runs() {
        assert_eq!(more_runs(3, 0, 3, 0), MoreRuns::Enough(4));
        assert_eq!(more_runs(6, 0, 6, 0), MoreRuns::Enough(1));
    }

    #[test]
    fn a_case_that_flipped_needs_few_runs_if_it_stays_flipped() {
        // Three of three passes compared with none of three: one of 20 permutations of the labels.
        assert_eq!(more_runs(1, 0, 0, 1), MoreRuns::Enough(2));
    }

    #[test]
    fn a_partial_fall_needs_more_runs_than_a_complete_one() {
        let MoreRuns::Enough(far) = more_runs(10, 0, 8, 2) else { panic!("can be decided") };
        let MoreRuns::Enough(near) = more_runs(10, 0, 7, 3) else { panic!("can be decided") };
        assert!(near < far, "{near} {far}");
        assert!((1..=12).contains(&near), "{near}");
    }

    #[test]
    fn a_longer_baseline_alone_decides_a_case_that_keeps_failing_on_new() {
        let thresholds = Thresholds::default();
        let baseline_alone = |case: CaseTallies| Planner::new(&thresholds).search(case, 0.05, Growth::BaselineAlone);
        let case = |baseline, new| CaseTallies { baseline: Tally::new(baseline, 0), new: Tally::new(0, new) };
        // One failure against 19 passes: one of 20 arrangements. Two against five: one of 21.
        assert_eq!(baseline_alone(case(2, 1)), MoreRuns::Enough(17));
        assert_eq!(baseline_alone(case(2, 2)), MoreRuns::Enough(3));
    }

    #[test]
    fn no_number_is_reported_if_none_up_to_the_limit_is_enough() {
        let thresholds = Thresholds { more_runs_up_to: 3, ..Thresholds::default() };
        let case = CaseTallies { baseline: Tally::new(9, 1), new: Tally::new(7, 3) };
        assert_eq!(Planner::new(&thresholds).search(case, 0.05, Growth::BothSides), MoreRuns::NotUpTo(3));
        let none = Thresholds { more_runs_up_to: 0, ..Thresholds::default() };
        assert_eq!(Planner::new(&none).search(case, 0.05, Growth::BothSides), MoreRuns::NotUpTo(0));
    }

    #[test]
    fn the_reported_number_is_enough_and_one_less_is_not() {
        let thresholds = Thresholds::default();
        let planner = Planner::new(&thresholds);
        for (passed, failed, new_passed, new_failed) in [(10, 0, 8, 2), (5, 0, 3, 2), (4, 1, 4, 1), (9, 1, 7, 3)] {
            let case = CaseTallies { baseline: Tally::new(passed, failed), new: Tally::new(new_passed, new_failed) };
            let MoreRuns::Enough(more) = planner.search(case, 0.05, Growth::BothSides) else {
                panic!("can be decided: {case:?}")
            };
            assert!(planner.chance_of_decision(case, Sides { baseline: more, new: more }, 0.05) >= 0.8);
            assert!(planner.chance_of_decision(case, Sides { baseline: more - 1, new: more - 1 }, 0.05) < 0.8);
        }
    }
}
