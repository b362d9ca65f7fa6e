//! Exact one-sided p-values for a fall of one case, from `k` of `n` on baseline to `k` of `n` on new.
//!
//! Fisher (1922, 1935) holds the number of passes of both sides together as given, which makes the test weak with few runs.
//! Boschloo (1970) takes Fisher's p-value as a mere ordering of the outcomes and asks how likely an outcome at least as bad
//! is when both sides pass equally often, whatever that rate is: the largest such probability over all rates. It is never
//! above Fisher's and keeps the level too.

use std::collections::BTreeMap;
use std::f64::consts::FRAC_PI_2;

use super::distribution::Distribution;
use super::tally::CaseTallies;

/// With more runs of both sides together, Fisher's test takes the place of Boschloo's: the two then hardly differ, and
/// Boschloo's cost grows with the product of the runs.
pub const BOSCHLOO_UP_TO: u32 = 400;

/// Rates at which the probability is looked at before the best of them is refined.
const RATES: u32 = 256;

/// Halvings by the golden ratio, until the rate is known to about a billionth.
const REFINEMENTS: usize = 30;

/// Equal probabilities may differ by what arithmetic leaves behind.
const TIE: f64 = 1.0 + 1e-9;

/// Which test gave a p-value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Boschloo's exact test.
    Boschloo,
    /// Fisher's exact test: there are too many runs for Boschloo's.
    Fisher,
    /// The smallest of Fisher's p-values over all looks, held against how small it gets by chance.
    Sequential,
}

/// One-sided p-value of Fisher's exact test: how likely new passes at most as often as seen, if the labels of all runs of
/// the case were dealt out anew. 1 where a side has no run.
pub fn fisher(case: CaseTallies) -> f64 {
    let CaseTallies { baseline, new } = case;
    let draws = Distribution::hypergeometric(baseline.runs(), new.runs(), baseline.passed.saturating_add(new.passed));
    draws.at_most(new.passed as usize).min(1.0)
}

/// The tests of cases. Keeps what it has worked out, since the cases of a suite mostly have the same numbers of runs.
#[derive(Debug, Default)]
pub struct CaseTests {
    tables: BTreeMap<(u32, u32), Table>,
}

impl CaseTests {
    /// The test for a case with so many runs.
    pub fn method(case: CaseTallies) -> Method {
        if case.baseline.runs().saturating_add(case.new.runs()) > BOSCHLOO_UP_TO {
            Method::Fisher
        } else {
            Method::Boschloo
        }
    }

    /// The one-sided p-value for a fall, and the test that gave it.
    pub fn fall(&mut self, case: CaseTallies) -> (f64, Method) {
        let method = Self::method(case);
        let p = match method {
            Method::Fisher | Method::Sequential => fisher(case),
            Method::Boschloo => {
                let (baseline, new) = (case.baseline.runs(), case.new.runs());
                self.tables.entry((baseline, new)).or_insert_with(|| Table::new(baseline, new)).p(case)
            }
        };
        (p, method)
    }
}

/// Everything about one pair of numbers of runs.
#[derive(Debug)]
struct Table {
    baseline_runs: u32,
    new_runs: u32,
    /// Fisher's p-value of each outcome, by the passes of baseline and then of new.
    fisher: Vec<Vec<f64>>,
    /// At each rate that is looked at: how likely baseline has each number of passes, and new at most each number.
    at_rates: Vec<AtRate>,
    known: BTreeMap<(u32, u32), f64>,
}

/// How likely each number of passes is at one rate.
#[derive(Debug)]
struct AtRate {
    baseline: Vec<f64>,
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

    /// How likely an outcome of the region is. For each number of passes of baseline, `worst` counts the outcomes of new in it.
    fn probability(&self, worst: &[usize]) -> f64 {
        let within = |count: &usize| count.checked_sub(1).map_or(0.0, |last| self.new_at_most[last]);
        self.baseline.iter().zip(worst).map(|(mass, count)| mass * within(count)).sum()
    }
}

impl Table {
    fn new(baseline_runs: u32, new_runs: u32) -> Self {
        let mut fisher = vec![vec![1.0; new_runs as usize + 1]; baseline_runs as usize + 1];
        for passed in 0..=baseline_runs + new_runs {
            let mut sum = 0.0;
            for (of_new, mass) in Distribution::hypergeometric(baseline_runs, new_runs, passed).iter() {
                sum += mass;
                fisher[passed as usize - of_new][of_new] = sum;
            }
        }
        let at_rates = (1..RATES).map(|step| AtRate::new(baseline_runs, new_runs, angle(f64::from(step)))).collect();
        Self { baseline_runs, new_runs, fisher, at_rates, known: BTreeMap::new() }
    }

    fn p(&mut self, case: CaseTallies) -> f64 {
        let outcome = (case.baseline.passed, case.new.passed);
        if let Some(p) = self.known.get(&outcome) {
            return *p;
        }
        let p = self.largest(self.fisher[outcome.0 as usize][outcome.1 as usize]);
        self.known.insert(outcome, p);
        p
    }

    /// The largest probability, over all rates, of an outcome whose p-value by Fisher is no larger than this one.
    fn largest(&self, fisher: f64) -> f64 {
        // Within a row, Fisher's p-value grows with the passes of new.
        let worst: Vec<usize> = self.fisher.iter().map(|row| row.partition_point(|p| *p <= fisher * TIE)).collect();
        let mut best = (0.0, 0.0);
        for (step, at_rate) in (1..RATES).zip(&self.at_rates) {
            let probability = at_rate.probability(&worst);
            if probability > best.1 {
                best = (f64::from(step), probability);
            }
        }
        let refined = golden_section(best.0 - 1.0, best.0 + 1.0, |step| {
            AtRate::new(self.baseline_runs, self.new_runs, angle(step)).probability(&worst)
        });
        best.1.max(refined).min(fisher).min(1.0)
    }
}

/// Equal steps of the angle whose squared sine is the rate: as fine everywhere as the spread of a binomial asks for.
fn angle(step: f64) -> f64 {
    (step / f64::from(RATES)).clamp(1e-6, 1.0 - 1e-6) * FRAC_PI_2
}

/// The largest value of a function with one peak between the bounds.
pub(super) fn golden_section(mut low: f64, mut high: f64, value: impl Fn(f64) -> f64) -> f64 {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::tally::Tally;
    use proptest::prelude::*;

    fn case(passed: u32, runs: u32, new_passed: u32, new_runs: u32) -> CaseTallies {
        CaseTallies { baseline: Tally::new(passed, runs - passed), new: Tally::new(new_passed, new_runs - new_passed) }
    }

    #[test]
    fn p_values_are_those_of_another_implementation() {
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
    fn many_runs_are_tested_by_fisher_and_say_so() {
        let many = case(190, 201, 150, 200);
        assert_eq!(CaseTests::default().fall(many), (fisher(many), Method::Fisher));
    }

    #[test]
    fn a_side_without_runs_shows_nothing() {
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
        fn boschloo_keeps_its_level_at_every_rate((baseline, new) in (1u32..12, 1u32..12), rate in 0.01f64..0.99) {
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
}
