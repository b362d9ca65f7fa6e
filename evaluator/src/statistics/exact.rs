//! Exact one-sided p-values for a fall of one case, from `k` of `n` on baseline to `k` of `n` on new.
//!
//! Fisher's test (1922, 1935) conditions on the total number of passes of both sides, which costs power with few runs.
//! Boschloo's test (1970) uses Fisher's p-value only to order the outcomes. Its p-value is the probability of an outcome at
//! least as extreme if both sides have the same pass rate, maximised over all rates. It is at most Fisher's p-value, so it has
//! more power, and it controls the false alarm rate too.

use std::collections::BTreeMap;
use std::f64::consts::FRAC_PI_2;

use super::tally::{CaseTallies, is_at_most};

/// The maximum number of runs, of both sides together, for Boschloo's test. Above it, Fisher's test is used: the p-values then
/// hardly differ, and the cost of Boschloo's test grows with the product of the runs.
pub const BOSCHLOO_UP_TO: u32 = 400;

/// The number of steps of the grid of rates. The best rate of the grid is then refined.
const RATES: u32 = 256;

/// Golden-section steps of the refinement. Each shrinks the interval by 0.618, all of them to less than a millionth of its length.
const REFINEMENTS: usize = 30;

/// Which test gave a p-value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Boschloo's exact test.
    Boschloo,
    /// Fisher's exact test, used above [`BOSCHLOO_UP_TO`] runs.
    Fisher,
}

/// One-sided p-value of Fisher's exact test: the probability that new has at most the observed number of passes if the labels of
/// all runs of the case are permuted. 1 if a side has no run.
pub fn fisher(case: CaseTallies) -> f64 {
    let CaseTallies { baseline, new } = case;
    let draws = Distribution::hypergeometric(baseline.runs(), new.runs(), baseline.passed.saturating_add(new.passed));
    draws.at_most(new.passed as usize).min(1.0)
}

/// Tests cases, and caches a table for each pair of run counts: most cases of a suite have the same numbers of runs.
#[derive(Debug, Default)]
pub struct CaseTests {
    tables: BTreeMap<(u32, u32), Table>,
}

impl CaseTests {
    /// Returns the test that applies to a case, by its number of runs.
    pub fn method(case: CaseTallies) -> Method {
        if case.baseline.runs().saturating_add(case.new.runs()) > BOSCHLOO_UP_TO {
            Method::Fisher
        } else {
            Method::Boschloo
        }
    }

    /// Returns the one-sided p-value for a fall, and the test that was used.
    pub fn fall(&mut self, case: CaseTallies) -> (f64, Method) {
        let method = Self::method(case);
        let p = match method {
            Method::Fisher => fisher(case),
            Method::Boschloo => {
                let (baseline, new) = (case.baseline.runs(), case.new.runs());
                self.tables.entry((baseline, new)).or_insert_with(|| Table::new(baseline, new)).p(case)
            }
        };
        (p, method)
    }
}

/// The precomputed probabilities for one pair of run counts.
#[derive(Debug)]
struct Table {
    baseline_runs: u32,
    new_runs: u32,
    /// Fisher's p-value of each outcome, by the passes of baseline and then of new.
    fisher: Vec<Vec<f64>>,
    /// The distributions of the passes at each rate of the grid.
    at_rates: Vec<AtRate>,
    p_values: BTreeMap<(u32, u32), f64>,
}

#[derive(Debug)]
struct AtRate {
    /// The probability of each number of passes on baseline.
    baseline: Vec<f64>,
    /// The cumulative probability of each number of passes on new.
    new_at_most: Vec<f64>,
}

impl AtRate {
    fn new(baseline_runs: u32, new_runs: u32, angle: f64) -> Self {
        let rate = angle.sin().powi(2);
        let [baseline, mut new_at_most] =
            [baseline_runs, new_runs].map(|runs| Distribution::binomial(runs, rate).into_mass());
        let mut sum = 0.0;
        for mass in &mut new_at_most {
            sum += *mass;
            *mass = sum;
        }
        Self { baseline, new_at_most }
    }

    /// The probability of the rejection region. For each number of passes on baseline, `worst` is the number of outcomes of new
    /// that are in the region; these are the lowest ones.
    fn probability(&self, worst: &[usize]) -> f64 {
        let within = |count: &usize| count.checked_sub(1).map_or(0.0, |last| self.new_at_most[last]);
        self.baseline.iter().zip(worst).map(|(mass, count)| mass * within(count)).sum()
    }
}

impl Table {
    fn new(baseline_runs: u32, new_runs: u32) -> Self {
        let mut fisher = vec![vec![1.0; new_runs as usize + 1]; baseline_runs as usize + 1];
        // One hypergeometric distribution per total of passes: its cumulative sums are Fisher's p-values of a whole diagonal.
        for passed in 0..=baseline_runs + new_runs {
            let mut sum = 0.0;
            for (of_new, mass) in Distribution::hypergeometric(baseline_runs, new_runs, passed).iter() {
                sum += mass;
                fisher[passed as usize - of_new][of_new] = sum;
            }
        }
        let at_rates = (1..RATES).map(|step| AtRate::new(baseline_runs, new_runs, angle(f64::from(step)))).collect();
        Self { baseline_runs, new_runs, fisher, at_rates, p_values: BTreeMap::new() }
    }

    fn p(&mut self, case: CaseTallies) -> f64 {
        let outcome = (case.baseline.passed, case.new.passed);
        if let Some(p) = self.p_values.get(&outcome) {
            return *p;
        }
        let p = self.largest(self.fisher[outcome.0 as usize][outcome.1 as usize]);
        self.p_values.insert(outcome, p);
        p
    }

    /// The maximum over all rates of the probability that Fisher's p-value is at most `fisher`.
    fn largest(&self, fisher: f64) -> f64 {
        // Within a row, Fisher's p-value grows with the passes of new, so the region is a prefix of the row.
        let worst: Vec<usize> = self.fisher.iter().map(|row| row.partition_point(|p| is_at_most(*p, fisher))).collect();
        // The probability as a function of the rate has several peaks, so a search alone could stop at a lower one.
        let mut best = (0.0, 0.0);
        for (step, at_rate) in (1..RATES).zip(&self.at_rates) {
            let probability = at_rate.probability(&worst);
            if probability > best.1 {
                best = (f64::from(step), probability);
            }
        }
        // The grid finds the highest peak; the refinement finds its top between the neighbouring grid points.
        let refined = golden_section(best.0 - 1.0, best.0 + 1.0, |step| {
            AtRate::new(self.baseline_runs, self.new_runs, angle(step)).probability(&worst)
        });
        // In exact arithmetic, Boschloo's p-value is at most Fisher's; the minimum removes rounding errors.
        best.1.max(refined).min(fisher).min(1.0)
    }
}

/// The angle of a step of the grid; the rate is its squared sine.
fn angle(step: f64) -> f64 {
    // This arcsine transform makes the variance of a binomial share independent of the rate, so equal steps have the same
    // resolution everywhere.
    (step / f64::from(RATES)).clamp(1e-6, 1.0 - 1e-6) * FRAC_PI_2
}

/// Maximum of a function with a single peak between the bounds, by golden-section search.
fn golden_section(mut low: f64, mut high: f64, value: impl Fn(f64) -> f64) -> f64 {
    const RATIO: f64 = 0.618_033_988_749_894_9;
    let (mut left, mut right) = (high - RATIO * (high - low), low + RATIO * (high - low));
    let (mut at_left, mut at_right) = (value(left), value(right));
    for _ in 0..REFINEMENTS {
        if at_left > at_right {
            (high, right, at_right) = (right, left, at_left);
            left = high - RATIO * (high - low);
            at_left = value(left);
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = low + RATIO * (high - low);
            at_right = value(right);
        }
    }
    at_left.max(at_right)
}

/// Smaller mass at either end is dropped. In a sum of a million terms, the dropped mass stays far below any p-value that
/// matters.
const NEGLIGIBLE: f64 = 1e-60;

/// The mass of each whole number from `first` on. The mass need not add up to one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Distribution {
    first: usize,
    mass: Vec<f64>,
}

impl Distribution {
    /// All mass on zero: the sum of no terms.
    pub(super) fn zero() -> Self {
        Self { first: 0, mass: vec![1.0] }
    }

    /// The number of passes in `runs` runs that each pass with probability `rate`, above 0 and below 1.
    pub(super) fn binomial(runs: u32, rate: f64) -> Self {
        let odds = rate / (1.0 - rate);
        Self::from_ratios(0, runs, |passed| f64::from(runs - passed) / f64::from(passed + 1) * odds)
    }

    /// The number of the `passed` passes that fall on `drawn` runs if the labels of all `drawn + others` runs are permuted.
    pub(super) fn hypergeometric(others: u32, drawn: u32, passed: u32) -> Self {
        let (others, drawn, passed) = (u64::from(others), u64::from(drawn), u64::from(passed));
        let (lowest, highest) = (passed.saturating_sub(others), passed.min(drawn));
        let narrow = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        Self::from_ratios(narrow(lowest), narrow(highest), |count| {
            let count = u64::from(count);
            let grows = (passed - count) as f64 * (drawn - count) as f64;
            grows / ((count + 1) as f64 * (others + count + 1 - passed) as f64)
        })
    }

    /// Builds a distribution from the ratio of each mass to the one before.
    fn from_ratios(lowest: u32, highest: u32, ratio: impl Fn(u32) -> f64) -> Self {
        // The products start at the largest mass: no product overflows, and no digits are lost to logarithms.
        let ratios: Vec<f64> = (lowest..highest).map(ratio).collect();
        // The distributions are unimodal, so the ratios fall and the mass is largest where they first drop below 1.
        let mode = ratios.partition_point(|ratio| *ratio >= 1.0);
        let mut mass = vec![1.0; ratios.len() + 1];
        for index in mode..ratios.len() {
            mass[index + 1] = mass[index] * ratios[index];
        }
        for index in (0..mode).rev() {
            mass[index] = mass[index + 1] / ratios[index];
        }
        let total: f64 = mass.iter().sum();
        for share in &mut mass {
            *share /= total;
        }
        Self { first: lowest as usize, mass }
    }

    /// Builds a distribution from the masses of some numbers; all others have none.
    pub(super) fn from_masses(masses: &BTreeMap<u64, f64>) -> Self {
        let narrow = |number: &u64| usize::try_from(*number).unwrap_or(usize::MAX);
        let (Some(first), Some(last)) = (masses.keys().next().map(narrow), masses.keys().next_back().map(narrow))
        else {
            return Self { first: 0, mass: vec![0.0] };
        };
        let mut mass = vec![0.0; last - first + 1];
        for (number, share) in masses {
            mass[narrow(number) - first] = *share;
        }
        Self { first, mass }
    }

    /// Each number with its mass, from the smallest on.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, f64)> {
        (self.first..).zip(self.mass.iter().copied())
    }

    pub(super) fn into_mass(self) -> Vec<f64> {
        self.mass
    }

    pub(super) fn at_most(&self, number: usize) -> f64 {
        self.iter().take_while(|(at, _)| *at <= number).map(|(_, mass)| mass).sum()
    }

    /// The mass of all numbers from `number` on.
    pub(super) fn at_least(&self, number: usize) -> f64 {
        self.iter().filter(|(at, _)| *at >= number).map(|(_, mass)| mass).sum()
    }

    pub(super) fn only(&self, keep: impl Fn(usize) -> bool) -> Self {
        let mass = self.iter().map(|(at, mass)| if keep(at) { mass } else { 0.0 }).collect();
        Self { first: self.first, mass }
    }

    /// The distribution of the sum of two independent numbers.
    pub(super) fn plus(&self, other: &Self) -> Self {
        let mut mass = vec![0.0; self.mass.len() + other.mass.len() - 1];
        for (shift, share) in self.mass.iter().enumerate().filter(|(_, share)| **share > 0.0) {
            for (at, more) in mass[shift..].iter_mut().zip(&other.mass) {
                *at += share * more;
            }
        }
        Self { first: self.first + other.first, mass }.trimmed()
    }

    /// The distribution of the sum of `count` independent numbers, in about log2(count) convolutions.
    pub(super) fn times(&self, count: usize) -> Self {
        // By repeated squaring, in about log2(count) convolutions.
        let (mut sum, mut power, mut left) = (Self::zero(), self.clone(), count);
        while left > 0 {
            if left % 2 == 1 {
                sum = sum.plus(&power);
            }
            left /= 2;
            if left > 0 {
                power = power.plus(&power);
            }
        }
        sum
    }

    /// Drops the negligible mass at both ends, so that the length of a sum follows its spread.
    fn trimmed(mut self) -> Self {
        // Without trimming, the sum over n cases has n times the range, although its spread grows with the root of n only.
        let heavy = |mass: &f64| *mass > NEGLIGIBLE;
        let start = self.mass.iter().position(heavy).unwrap_or(0);
        let end = self.mass.iter().rposition(heavy).map_or(1, |last| last + 1);
        self.mass.truncate(end.max(start + 1));
        self.mass.drain(..start);
        self.first += start;
        self
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::statistics::tally::{TIE, Tally};

    fn case(passed: u32, runs: u32, new_passed: u32, new_runs: u32) -> CaseTallies {
        CaseTallies { baseline: Tally::new(passed, runs - passed), new: Tally::new(new_passed, new_runs - new_passed) }
    }

    #[test]
    fn p_values_equal_those_of_scipy() {
        // `fisher_exact` and `boschloo_exact(n=128)` of SciPy 1.17.1, alternative "greater".
        let known = [
            (case(10, 10, 6, 10), 0.043_343_653_3, 0.021_095_275_9),
            (case(9, 10, 4, 10), 0.028_637_770_9, 0.011_389_913_5),
            (case(5, 5, 0, 5), 0.003_968_254_0, 0.000_976_562_5),
            (case(1, 1, 0, 1), 0.5, 0.25),
            (case(20, 20, 15, 20), 0.023_562_023_6, 0.011_263_893_0),
            (case(19, 20, 12, 20), 0.009_828_009_8, 0.004_660_327_9),
            (case(74, 105, 43, 75), 0.048_312_210_1, 0.035_788_902_5),
            (case(12, 12, 3, 7), 0.009_029_927_8, 0.002_764_911_9),
            (case(7, 12, 1, 5), 0.183_257_918_6, 0.092_231_088_4),
            (case(2, 2, 0, 1), 0.333_333_333_3, 0.148_148_148_1),
            (case(8, 10, 8, 10), 0.708_978_328_2, 0.588_355_132_0),
        ];
        let mut tests = CaseTests::default();
        for (case, by_fisher, by_boschloo) in known {
            assert!((fisher(case) - by_fisher).abs() < 1e-9, "{case:?}: {}", fisher(case));
            let (p, method) = tests.fall(case);
            assert_eq!(method, Method::Boschloo);
            assert!((p - by_boschloo).abs() < 1e-6, "{case:?}: {p}");
        }
    }

    #[test]
    fn many_runs_are_tested_with_fishers_test() {
        let many = case(190, 201, 150, 200);
        assert_eq!(CaseTests::default().fall(many), (fisher(many), Method::Fisher));
    }

    #[test]
    fn a_side_without_runs_has_a_p_value_of_1() {
        assert!((fisher(case(3, 3, 0, 0)) - 1.0).abs() < 1e-12);
        assert!((CaseTests::default().fall(case(3, 3, 0, 0)).0 - 1.0).abs() < 1e-12);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn boschloo_is_never_weaker_than_fisher_and_grows_with_the_passes_of_new(
            (baseline, new) in (1u32..14, 1u32..14), passed in 0u32..14
        ) {
            let mut tests = CaseTests::default();
            let mut before = 0.0;
            for new_passed in 0..=new {
                let case = case(passed.min(baseline), baseline, new_passed, new);
                let (p, _) = tests.fall(case);
                prop_assert!(p <= fisher(case) * TIE, "{case:?}: {p} > {}", fisher(case));
                prop_assert!(p > 0.0 && p * TIE >= before, "{case:?}: {p} < {before}");
                before = p;
            }
        }

        #[test]
        fn boschloo_controls_the_false_alarm_rate_at_every_pass_rate((baseline, new) in (1u32..12, 1u32..12), rate in 0.01f64..0.99) {
            let mut tests = CaseTests::default();
            let mut alarms = 0.0;
            for (passed, mass) in Distribution::binomial(baseline, rate).iter() {
                for (new_passed, more) in Distribution::binomial(new, rate).iter() {
                    let narrow = |count: usize| u32::try_from(count).unwrap();
                    if tests.fall(case(narrow(passed), baseline, narrow(new_passed), new)).0 <= 0.05 {
                        alarms += mass * more;
                    }
                }
            }
            prop_assert!(alarms <= 0.05 + 1e-6, "{alarms}");
        }
    }

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() <= 1e-12
    }

    #[test]
    fn small_distributions_are_those_of_the_textbook() {
        let coins = Distribution::binomial(3, 0.5);
        assert!(coins.iter().zip([0.125, 0.375, 0.375, 0.125]).all(|((_, mass), known)| close(mass, known)));
        // Five of ten runs passed: the tea-tasting table of Fisher (1935) has eight, of which four.
        let tea = Distribution::hypergeometric(4, 4, 4);
        let known = [1.0, 16.0, 36.0, 16.0, 1.0].map(|ways| ways / 70.0);
        assert!(tea.iter().zip(known).all(|((_, mass), known)| close(mass, known)));
        let forced = Distribution::hypergeometric(1, 3, 3);
        assert_eq!(forced.iter().map(|(at, _)| at).collect::<Vec<_>>(), [2, 3]);
    }

    #[test]
    fn a_sum_of_binomials_is_a_binomial() {
        let (sum, whole) = (Distribution::binomial(7, 0.3).times(9), Distribution::binomial(63, 0.3));
        for number in 0..=63 {
            assert!(close(sum.at_most(number), whole.at_most(number)), "{number}");
            assert!(close(sum.at_least(number), whole.at_least(number)), "{number}");
        }
        assert_eq!(Distribution::binomial(7, 0.3).times(0), Distribution::zero());
    }

    #[test]
    fn a_sum_of_many_terms_stays_as_short_as_its_spread() {
        let sum = Distribution::hypergeometric(5, 5, 9).times(100_000);
        assert!(sum.mass.len() < 10_000, "{}", sum.mass.len());
        assert!((sum.at_most(usize::MAX) - 1.0).abs() < 1e-9);
        assert!((0.49..0.51).contains(&sum.at_most(450_000)));
    }
}
