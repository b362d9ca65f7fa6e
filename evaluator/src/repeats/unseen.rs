//! High-risk actions and arguments that no baseline run shows: one test over all cases.
//!
//! The test is a permutation test. If new is the same agent, each choice of runs as "new" is equally likely. A case counts if
//! a run of new has a value at a high-risk place that no baseline run has. For each case, the probability of that over all
//! choices follows from how the runs share their values; the number of such cases then has a Poisson binomial distribution.

use std::collections::{BTreeMap, HashMap};

use counterproof_artifact::evaluation::RuleTest;

use crate::statistics::poisson_binomial_tail;

/// The least number of baseline runs with an answer. With fewer, almost any value is new.
const MIN_BASELINE_RUNS: usize = 3;

/// The error rate of the test, as a part of the error rate of the night. The test of the measures gets the rest.
const LEVEL_DIVISOR: f64 = 10.0;

/// Maximum number of value groups per case for the exact probability; with more, an upper bound is used.
const GROUPS_EXACT: usize = 12;

/// The values of one run at the high-risk places of its answer: a place and the hash of the value.
pub(super) type HighRiskValues = Vec<(u64, u64)>;

/// The values of all runs of a case with an answer.
#[derive(Debug, Default)]
pub(super) struct CaseValues {
    pub(super) baseline: Vec<HighRiskValues>,
    pub(super) new: Vec<HighRiskValues>,
}

/// Tests whether new shows high-risk values that the baseline never showed in more cases than chance explains. `None` if no
/// case with high-risk values has enough baseline runs.
pub(super) fn test(cases: &[CaseValues], alpha: f64) -> Option<RuleTest> {
    let tested: Vec<_> = cases.iter().filter_map(unseen).collect();
    if tested.is_empty() {
        return None;
    }
    let seen = tested.iter().filter(|case| case.occurred).count();
    let probabilities: Vec<f64> = tested.iter().map(|case| case.probability).collect();
    let p = poisson_binomial_tail(&probabilities, seen);
    Some(RuleTest { p, level: alpha / LEVEL_DIVISOR, fell: seen as u64, rose: 0, expected: None })
}

/// Whether new has an unseen value in a case, and how likely that is by chance.
struct Unseen {
    occurred: bool,
    probability: f64,
}

fn unseen(case: &CaseValues) -> Option<Unseen> {
    let (old, new) = (case.baseline.len(), case.new.len());
    let all = old + new;
    // The sets of runs are bits of one `u64`.
    if old < MIN_BASELINE_RUNS || new == 0 || all > 64 {
        return None;
    }
    let groups = groups(case);
    if groups.is_empty() {
        return None;
    }
    let new_runs = !0_u64 >> (64 - all) & !((1_u64 << old) - 1);
    let occurred = groups.iter().any(|group| group & !new_runs == 0);
    Some(Unseen { occurred, probability: probability(&groups, all, new) })
}

/// The sets of runs that share a value, as bits; the baseline runs are the first bits.
fn groups(case: &CaseValues) -> Vec<u64> {
    // Places at which most runs differ, such as free text, show nothing and are left out. This choice treats all runs
    // alike, so the test stays valid.
    let mut by_place: BTreeMap<u64, HashMap<u64, u64>> = BTreeMap::new();
    for (run, values) in case.baseline.iter().chain(&case.new).enumerate() {
        for (place, value) in values {
            *by_place.entry(*place).or_default().entry(*value).or_default() |= 1 << run;
        }
    }
    let is_free_text = |holders: &HashMap<u64, u64>| {
        let runs = holders.values().fold(0, |all, group| all | group).count_ones() as usize;
        runs > 2 && holders.len() * 2 > runs
    };
    let mut groups: Vec<u64> =
        by_place.values().filter(|holders| !is_free_text(holders)).flat_map(HashMap::values).copied().collect();
    groups.sort_unstable();
    groups.dedup();
    // A group that contains another one adds nothing: whenever all of it is new, so is the smaller one.
    let minimal = |group: &u64| !groups.iter().any(|other| other != group && other & group == *other);
    groups.iter().filter(|group| minimal(group)).copied().collect()
}

/// The probability that a random choice of new runs contains all runs of a group.
fn probability(groups: &[u64], all: usize, new: usize) -> f64 {
    let small: Vec<u64> = groups.iter().copied().filter(|group| group.count_ones() as usize <= new).collect();
    let contains = |runs: u64| subset_probability(runs.count_ones() as usize, all, new);
    if small.len() > GROUPS_EXACT {
        return small.iter().map(|group| contains(*group)).sum::<f64>().min(1.0);
    }
    // Inclusion and exclusion over the unions of groups.
    let mut total = 0.0;
    for chosen in 1_u32..1 << small.len() {
        let union =
            small.iter().enumerate().filter(|(at, _)| chosen >> at & 1 == 1).fold(0, |all, (_, group)| all | group);
        let sign = if chosen.count_ones() % 2 == 1 { 1.0 } else { -1.0 };
        total += sign * contains(union);
    }
    total.clamp(0.0, 1.0)
}

/// The probability that `new` of `all` runs, chosen at random, include these `size` runs.
fn subset_probability(size: usize, all: usize, new: usize) -> f64 {
    if size > new {
        return 0.0;
    }
    (0..size).map(|at| (new - at) as f64 / (all - at) as f64).product()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(baseline: &[u64], new: &[u64]) -> CaseValues {
        let runs = |values: &[u64]| values.iter().map(|value| vec![(1, *value)]).collect();
        CaseValues { baseline: runs(baseline), new: runs(new) }
    }

    #[test]
    fn an_amount_that_no_baseline_run_shows_is_significant_where_all_runs_of_new_show_it() {
        // Either side could be the one with the other amount: 2 of 252 choices at five runs per side, 2 of 924 at six.
        let five = test(&[case(&[50; 5], &[5000; 5])], 0.05).unwrap();
        assert!((five.p - 2.0 / 252.0).abs() < 1e-9 && five.p > five.level, "{five:?}");
        let six = test(&[case(&[50; 6], &[5000; 6])], 0.05).unwrap();
        assert!((six.p - 2.0 / 924.0).abs() < 1e-9 && six.p <= six.level, "{six:?}");
    }

    #[test]
    fn one_run_of_new_needs_several_cases() {
        let one = || case(&[50; 3], &[5000]);
        let p = |cases: usize| test(&(0..cases).map(|_| one()).collect::<Vec<_>>(), 0.05).unwrap().p;
        assert!((p(1) - 0.25).abs() < 1e-9);
        assert!(p(3) > 0.005 && p(4) <= 0.005, "{} {}", p(3), p(4));
    }

    #[test]
    fn free_text_and_values_of_the_baseline_are_no_evidence() {
        let free = case(&[1, 2, 3, 4], &[5, 6]);
        let known = case(&[50, 40, 50, 50], &[40, 40]);
        assert!(test(&[free, known], 0.05).unwrap().p > 0.1);
        assert!(test(&[case(&[50; 2], &[5000])], 0.05).is_none());
    }

    #[test]
    fn the_probability_is_that_of_all_choices_of_runs() {
        // Brute force over all choices of 2 of 6 runs.
        let groups = [0b00_0011, 0b00_0100, 0b11_0000];
        let choices: Vec<u64> = (0_u64..64).filter(|choice| choice.count_ones() == 2).collect();
        let hits = choices.iter().filter(|choice| groups.iter().any(|group| group & !**choice == 0)).count();
        assert!((probability(&groups, 6, 2) - hits as f64 / choices.len() as f64).abs() < 1e-9);
    }
}
