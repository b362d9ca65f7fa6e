//! Comparisons of whole runs, for sides whose runs differ among themselves.
//!
//! The other tests take the runs of different cases as independent. An hour in which a provider answers worse hits all cases of a run
//! at once, and then a few cases more or less are no evidence. Exchangeable are then only the runs as wholes: under the null
//! hypothesis, each choice of the runs of new among all runs is equally likely.

use std::collections::BTreeMap;

use counterproof_artifact::{Side, Sides};
use fastrand::Rng;

use super::exact::{CaseTests, Distribution};
use super::suite_decision::{CaseJudgement, SuiteDecision, SuiteJudgement, TestResult, Thresholds, tier, untested};
use super::tally::{CaseTallies, Tally, is_at_most};

/// Fewest runs of each side. With 3, the smallest p-value is 1/20, and 1/16 after its share of the level.
const RUNS: usize = 4;

/// Most runs of both sides together: one bit each.
const MOST_RUNS: usize = 64;

/// The level of the test for runs that differ among themselves. A false alarm costs power in one night of ten and is no error; a bad
/// hour that is missed is one, so the level is higher than usual.
const LEVEL: f64 = 0.1;

/// The shares of the level for the sum over all cases and for single cases, as without bad hours.
const SUITE_SHARE: f64 = 0.8;
const CASES_SHARE: f64 = 0.2;

/// Most choices that are compared, and most pairs of a choice and a case. Of more choices, a sample is compared.
const CHOICES: usize = 20_000;
const LOOKUPS: usize = 20_000_000;

/// Whether each run of a case passes; `None` where a run has no result.
pub(crate) type CasePasses = Sides<Vec<Option<bool>>>;

/// A run that passes far fewer or far more cases than the runs of its side let expect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeviatingRun {
    pub(crate) side: Side,
    /// The index among the runs of its side.
    pub(crate) run: usize,
    /// The number of cases that it passes.
    pub(crate) passed: usize,
}

/// Finds the run that deviates most, if the runs of a side differ among themselves by more than their cases allow.
///
/// If the runs of a side are exchangeable within each case, the passes of a case are in any of its runs with equal probability,
/// so that the number of cases that one run passes is a sum of independent draws: an exact test for each run (Bonferroni over all).
pub(crate) fn deviating(cases: &[CasePasses]) -> Option<DeviatingRun> {
    let runs = runs(cases)?;
    let mut worst = (LEVEL, None);
    for side in Side::BOTH {
        for run in 0..*runs.get(side) {
            let mut shapes: BTreeMap<(u32, u32), usize> = BTreeMap::new();
            let mut passed = 0;
            for case in cases {
                let results = case.get(side);
                let Some(passes) = results[run] else { continue };
                passed += usize::from(passes);
                let tally: Tally = results.iter().copied().flatten().collect();
                *shapes.entry((tally.runs(), tally.passed)).or_default() += 1;
            }
            let draws = shapes
                .into_iter()
                .map(|((runs, passed), cases)| Distribution::hypergeometric(runs - 1, 1, passed).times(cases));
            let sum = draws.fold(Distribution::zero(), |sum, draws| sum.plus(&draws));
            let tail = sum.at_most(passed).min(sum.at_least(passed));
            let p = 2.0 * tail * (runs.baseline + runs.new) as f64;
            if is_at_most(p, worst.0) {
                worst = (p, Some(DeviatingRun { side, run, passed }));
            }
        }
    }
    worst.1
}

/// The number of runs of each side; `None` if they are too few or too many.
fn runs(cases: &[CasePasses]) -> Option<Sides<usize>> {
    let first = cases.first()?;
    let runs = Sides::new(first.baseline.len(), first.new.len());
    (runs.baseline >= RUNS && runs.new >= RUNS && runs.baseline + runs.new <= MOST_RUNS).then_some(runs)
}

/// Judges all cases of a suite by the choices of whole runs.
pub(crate) fn judge_whole_runs(cases: &[CasePasses], thresholds: &Thresholds, tests: &mut CaseTests) -> SuiteDecision {
    let level = thresholds.alpha.value();
    let masks: Vec<Masks> = cases.iter().map(Masks::new).collect();
    let Some(runs) = runs(cases) else {
        let cases = masks.iter().map(|_| untested(CaseTallies::default())).collect();
        return SuiteDecision { cases, suite: None, p: None };
    };
    let seen = ((1_u64 << runs.new) - 1) << runs.baseline;
    let scores = scores(&masks, runs.baseline + runs.new);
    let score = |chosen: u64| -> f64 { scores.iter().enumerate().map(|(run, it)| bit(chosen, run) * it).sum() };
    let p: Vec<f64> = masks.iter().map(|case| tests.fall(case.tallies(seen)).0).collect();
    let seen_score = score(seen);
    // Most cases have the same results, and equal cases have equal p-values.
    let mut distinct = masks.clone();
    distinct.sort_unstable_by_key(|case| (case.known, case.passed));
    distinct.dedup_by_key(|case| (case.known, case.passed));
    // Each choice with its sum, and the smallest p-value of its cases.
    let choices: Vec<(f64, f64)> = choices(runs, distinct.len())
        .into_iter()
        .map(|chosen| {
            let smallest = distinct.iter().map(|case| tests.fall(case.tallies(chosen)).0).fold(1.0, f64::min);
            (score(chosen), smallest)
        })
        .collect();
    let share = |holds: &dyn Fn(&(f64, f64)) -> bool| {
        choices.iter().filter(|choice| holds(choice)).count() as f64 / choices.len() as f64
    };
    // Sums of the same passes differ by rounding only.
    let suite = (share(&|(score, _)| *score <= seen_score + 1e-9) / SUITE_SHARE).min(1.0);
    let corrected = |p: f64| (share(&|(_, smallest)| is_at_most(*smallest, p)) / CASES_SHARE).min(1.0);
    let judge = |(case, p): (&Masks, &f64)| {
        let (tallies, corrected) = (case.tallies(seen), corrected(*p));
        let result = TestResult { p: *p, significant: is_at_most(corrected, level) };
        CaseJudgement { tallies, tier: tier(tallies, result, thresholds), p: Some(*p), corrected: Some(corrected) }
    };
    let judged: Vec<_> = masks.iter().zip(&p).map(judge).collect();
    let overall = judged.iter().filter_map(|case| case.corrected).fold(suite, f64::min);
    let suite = SuiteJudgement { p: suite, rejected: is_at_most(suite, level) };
    SuiteDecision { cases: judged, suite: Some(suite), p: Some(overall) }
}

/// The results of a case: a bit for each run, those of baseline first.
#[derive(Debug, Clone, Copy)]
struct Masks {
    known: u64,
    passed: u64,
}

impl Masks {
    fn new(case: &CasePasses) -> Self {
        let mut masks = Self { known: 0, passed: 0 };
        for (run, result) in case.baseline.iter().chain(&case.new).take(MOST_RUNS).enumerate() {
            masks.known |= u64::from(result.is_some()) << run;
            masks.passed |= u64::from(*result == Some(true)) << run;
        }
        masks
    }

    /// The counts if these runs are those of new.
    fn tallies(self, new: u64) -> CaseTallies {
        let count = |runs: u64| {
            let (known, passed) = ((self.known & runs).count_ones(), (self.passed & runs).count_ones());
            Tally::new(passed, known - passed)
        };
        CaseTallies { baseline: count(!new), new: count(new) }
    }
}

/// For each run, how many more cases it passes than all runs do on average. A run without a result of a case is average in it.
fn scores(masks: &[Masks], runs: usize) -> Vec<f64> {
    let mut scores = vec![0.0; runs];
    for case in masks {
        let mean = f64::from(case.passed.count_ones()) / f64::from(case.known.count_ones().max(1));
        for (run, score) in scores.iter_mut().enumerate() {
            *score += bit(case.passed, run) - mean * bit(case.known, run);
        }
    }
    scores
}

fn bit(mask: u64, run: usize) -> f64 {
    if mask >> run & 1 == 1 { 1.0 } else { 0.0 }
}

/// The choices of the runs of new: all of them, or the observed one and a sample. The seed is fixed, so that the same runs give the
/// same result.
fn choices(runs: Sides<usize>, cases: usize) -> Vec<u64> {
    let all = runs.baseline + runs.new;
    let most = CHOICES.min(LOOKUPS / cases.max(1)).max(1000);
    if number_of_choices(all, runs.new).is_some_and(|number| number <= most) {
        let mut found = Vec::new();
        let mut chosen = (1_u64 << runs.new) - 1;
        while chosen >> all == 0 {
            found.push(chosen);
            // The next larger number with as many bits.
            let lowest = chosen & chosen.wrapping_neg();
            let ripple = chosen + lowest;
            chosen = ripple | (((chosen ^ ripple) >> 2) / lowest);
        }
        return found;
    }
    let mut random = Rng::with_seed(1);
    let mut order: Vec<usize> = (0..all).collect();
    let observed = ((1_u64 << runs.new) - 1) << runs.baseline;
    let sample = (1..most).map(|_| {
        random.shuffle(&mut order);
        order[..runs.new].iter().fold(0, |chosen, run| chosen | 1 << run)
    });
    // With the observed choice, the share is a valid p-value (Phipson & Smyth 2010).
    std::iter::once(observed).chain(sample).collect()
}

/// The binomial coefficient; `None` if it is too large.
fn number_of_choices(all: usize, chosen: usize) -> Option<usize> {
    (0..chosen).try_fold(1_usize, |number, index| Some(number.checked_mul(all - index)? / (index + 1)))
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;
    use proptest::prelude::*;

    use super::*;

    /// Runs of cases that pass with this probability, in hours that make this share of the answers wrong.
    fn night(random: &mut Rng, cases: usize, rate: f64, hours: &Sides<Vec<f64>>) -> Vec<CasePasses> {
        let mut run = |wrong: &f64| Some(random.f64() < rate * (1.0 - wrong));
        (0..cases)
            .map(|_| {
                Sides::new(hours.baseline.iter().map(&mut run).collect(), hours.new.iter().map(&mut run).collect())
            })
            .collect()
    }

    fn share(nights: u64, mut holds: impl FnMut(&mut Rng) -> bool) -> f64 {
        (0..nights).filter(|seed| holds(&mut Rng::with_seed(*seed))).count() as f64 / nights as f64
    }

    #[test]
    fn runs_that_differ_by_chance_are_told_from_a_bad_hour() {
        let usual = Sides::new(vec![0.0; 5], vec![0.0; 5]);
        let found = share(1000, |random| deviating(&night(random, 50, 0.9, &usual)).is_some());
        assert!(found <= LEVEL + 0.03, "{found}");
        let bad = Sides::new(vec![0.0; 5], vec![0.0, 0.0, 0.3, 0.0, 0.0]);
        let found = share(300, |random| {
            deviating(&night(random, 50, 0.9, &bad)).is_some_and(|it| (it.side, it.run) == (Side::New, 2))
        });
        assert!(found >= 0.8, "{found}");
        assert_eq!(deviating(&[]), None);
        let few = Sides::new(vec![0.0; 3], vec![0.9, 0.0, 0.0]);
        assert_eq!(deviating(&night(&mut Rng::with_seed(1), 50, 0.9, &few)), None);
    }

    #[test]
    fn bad_hours_of_both_sides_fail_no_more_nights_than_the_level() {
        let mut tests = CaseTests::default();
        let thresholds = Thresholds::default();
        let red = share(1000, |random| {
            let mut hours = || (0..5).map(|_| if random.f64() < 0.2 { 0.3 } else { 0.0 }).collect::<Vec<_>>();
            let hours = Sides::new(hours(), hours());
            judge_whole_runs(&night(random, 30, 0.85, &hours), &thresholds, &mut tests).alarm()
        });
        assert!(red <= 0.065, "{red}");
    }

    #[test]
    fn a_fall_of_the_suite_is_found_among_bad_hours() {
        let mut tests = CaseTests::default();
        let red = share(100, |random| {
            let mut cases = night(random, 50, 0.9, &Sides::new(vec![0.0, 0.3, 0.0, 0.0, 0.0], vec![0.0; 0]));
            let new = night(random, 50, 0.6, &Sides::new(vec![0.0; 0], vec![0.0; 5]));
            cases.iter_mut().zip(new).for_each(|(case, other)| case.new = other.new);
            judge_whole_runs(&cases, &Thresholds::default(), &mut tests).suite.unwrap().rejected
        });
        assert!(red >= 0.95, "{red}");
    }

    #[test]
    fn a_run_without_a_result_is_average() {
        let passes = |bits: &[Option<bool>]| bits.to_vec();
        let all = passes(&[Some(true); 4]);
        let mut cases = vec![Sides::new(all.clone(), all); 10];
        cases[0].new[0] = None;
        let judged = judge_whole_runs(&cases, &Thresholds::default(), &mut CaseTests::default());
        assert_eq!(judged.cases[0].tallies.new.runs(), 3);
        assert!(judged.suite.unwrap().p > 0.99);
    }

    proptest! {
        #[test]
        fn choices_are_different_and_have_the_runs_of_new(baseline in 4_usize..8, new in 4_usize..8) {
            let found = choices(Sides::new(baseline, new), 10);
            prop_assert_eq!(Some(found.len()), number_of_choices(baseline + new, new));
            prop_assert!(found.iter().all(|chosen| chosen.count_ones() as usize == new));
            prop_assert!(found.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert!(found.contains(&(((1_u64 << new) - 1) << baseline)));
        }
    }
}
