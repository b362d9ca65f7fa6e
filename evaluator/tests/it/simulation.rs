//! Simulated suites with known pass rates. Small suites are summed over all outcomes; larger ones are sampled with fixed seeds.
//! Shared by the tests and the benchmark `trust`.

use counterproof_evaluator::statistics::{
    CaseTallies, CaseTests, PlaceValues, SuiteDecision, Tally, Thresholds, judge_place, judge_with,
};
use fastrand::Rng;

/// The results of some runs, each of which passes with this probability.
fn runs(random: &mut Rng, count: u32, chance: f64) -> Tally {
    (0..count).map(|_| random.f64() < chance).collect()
}

/// A suite: the pass rates of each case on baseline and on new, and the number of runs per side.
pub(crate) struct Suite {
    pub(crate) name: &'static str,
    runs: u32,
    pub(crate) rates: Vec<(f64, f64)>,
}

impl Suite {
    /// A suite whose cases all have the same rates.
    fn uniform(name: &'static str, cases: usize, runs: u32, old: f64, new: f64) -> Self {
        Self { name, runs, rates: vec![(old, new); cases] }
    }

    /// An unchanged suite with cases from steady to flaky.
    pub(crate) fn mixed(name: &'static str, cases: usize, runs: u32) -> Self {
        let rates = [1.0, 0.98, 0.95, 0.9, 0.7, 0.5, 0.3, 1.0, 0.0, 0.85].map(|rate| (rate, rate));
        Self { name, runs, rates: rates.into_iter().cycle().take(cases).collect() }
    }

    /// Returns the number of nights whose decision has the property.
    pub(crate) fn nights(&self, nights: u32, is: impl Fn(&SuiteDecision) -> bool) -> u32 {
        let (thresholds, mut tests) = (Thresholds::default(), CaseTests::default());
        let mut found = 0;
        for night in 0..nights {
            let mut random = Rng::with_seed(u64::from(night));
            let case = |(old, new): &(f64, f64)| CaseTallies {
                baseline: runs(&mut random, self.runs, *old),
                new: runs(&mut random, self.runs, *new),
            };
            let cases: Vec<CaseTallies> = self.rates.iter().map(case).collect();
            found += u32::from(is(&judge_with(&cases, &thresholds, &mut tests)));
        }
        found
    }
}

/// Unchanged suites, for the rate of false alarms.
pub(crate) fn unchanged_suites() -> Vec<Suite> {
    vec![
        Suite::mixed("100 cases × 5, steady to flaky", 100, 5),
        Suite::uniform("50 cases × 3, all at 50 %", 50, 3, 0.5, 0.5),
        Suite::mixed("20 cases × 20, steady to flaky", 20, 20),
        Suite::uniform("10 cases × 10, all at 80 %", 10, 10, 0.8, 0.8),
        Suite::mixed("100 cases × 1, steady to flaky", 100, 1),
        Suite::uniform("2 cases × 8, both at 60 %", 2, 8, 0.6, 0.6),
    ]
}

pub(crate) fn suite_that_falls() -> Suite {
    Suite::uniform("100 cases × 5, from 90 % to 82 %", 100, 5, 0.9, 0.82)
}

/// Each number of passes with its probability.
pub(crate) fn binomial(runs: u32, chance: f64) -> Vec<(Tally, f64)> {
    let mut masses = vec![1.0];
    for _ in 0..runs {
        let mut next = vec![0.0; masses.len() + 1];
        for (passed, mass) in masses.iter().enumerate() {
            next[passed] += mass * (1.0 - chance);
            next[passed + 1] += mass * chance;
        }
        masses = next;
    }
    (0..).zip(masses).map(|(passed, mass)| (Tally::new(passed, runs - passed), mass)).collect()
}

/// The exact probability that a suite of one case fails the gate: the sum over all outcomes.
pub(crate) fn alarm_of_one_case(runs: u32, old: f64, new: f64, tests: &mut CaseTests) -> f64 {
    let mut alarm = 0.0;
    for (baseline, mass) in binomial(runs, old) {
        for (new, more) in binomial(runs, new) {
            let judged = judge_with(&[CaseTallies { baseline, new }], &Thresholds::default(), tests);
            alarm += if judged.alarm() { mass * more } else { 0.0 };
        }
    }
    alarm
}

/// Returns the adjusted p-values of Benjamini & Hochberg (1995), in the order of `p`. A case is significant at every level not
/// below its adjusted value.
pub(crate) fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let count = p.len() as f64;
    let mut adjusted = vec![1.0; p.len()];
    let mut smallest: f64 = 1.0;
    let mut ascending: Vec<usize> = (0..p.len()).collect();
    ascending.sort_by(|left, right| p[*left].total_cmp(&p[*right]));
    // From the largest p-value down, so that no adjusted value exceeds the one of a larger p-value (step-up procedure).
    for (rank, index) in ascending.into_iter().enumerate().rev() {
        smallest = smallest.min(p[index] * count / (rank + 1) as f64);
        adjusted[index] = smallest;
    }
    adjusted
}

/// Returns the number of nights in which a place is reported as changed. Each of 50 cases has two baseline runs and one new run.
/// `old` and `new` are the probabilities that a run of the side has an unusual value at the place.
pub(crate) fn place_nights(nights: u32, old: f64, new: f64) -> u32 {
    let mut found = 0;
    for night in 0..nights {
        let mut random = Rng::with_seed(u64::from(night));
        let mut value = |chance: f64| if random.f64() < chance { random.u64(1..4) } else { 0 };
        let cases: Vec<PlaceValues> =
            (0..50).map(|_| PlaceValues { baseline: vec![value(old), value(old)], new: vec![value(new)] }).collect();
        found += u32::from(judge_place(&cases).pooled.p.is_some_and(|p| p <= 0.05));
    }
    found
}
