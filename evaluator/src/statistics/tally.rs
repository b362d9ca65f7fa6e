//! How often a case passed, the intervals for its pass rate and for its fall, and the comparison of p-values with a level.

/// The runs of one case on one side. A run without a result is in neither count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tally {
    /// Runs in which the case passed.
    pub passed: u32,
    /// Runs in which it did not.
    pub failed: u32,
}

impl Tally {
    /// Creates a tally from the two counts.
    pub const fn new(passed: u32, failed: u32) -> Self {
        Self { passed, failed }
    }

    /// All runs.
    pub const fn runs(self) -> u32 {
        self.passed.saturating_add(self.failed)
    }

    /// The counts of both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self::new(self.passed.saturating_add(other.passed), self.failed.saturating_add(other.failed))
    }

    /// The same number of runs with another number of passes.
    const fn with_passes(self, passed: u32) -> Self {
        Self::new(passed, self.runs().saturating_sub(passed))
    }

    /// The share of runs that passed; `None` without runs.
    pub fn rate(self) -> Option<f64> {
        (self.runs() > 0).then(|| f64::from(self.passed) / f64::from(self.runs()))
    }
}

impl FromIterator<bool> for Tally {
    /// Counts outcomes: true is a run that passed.
    fn from_iter<I: IntoIterator<Item = bool>>(outcomes: I) -> Self {
        outcomes.into_iter().fold(Self::default(), |tally, passed| {
            if passed {
                Self { passed: tally.passed.saturating_add(1), ..tally }
            } else {
                Self { failed: tally.failed.saturating_add(1), ..tally }
            }
        })
    }
}

/// One case on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CaseTallies {
    /// The known-good side.
    pub baseline: Tally,
    /// The side under test.
    pub new: Tally,
}

impl CaseTallies {
    /// The observed fall of the pass rate, negative for a rise; `None` if a side has no run.
    pub fn drop(self) -> Option<f64> {
        Some(self.baseline.rate()? - self.new.rate()?)
    }

    /// The counts of both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self { baseline: self.baseline.plus(other.baseline), new: self.new.plus(other.new) }
    }

    /// The same numbers of runs with other numbers of passes.
    #[must_use]
    pub(super) const fn with_passes(self, baseline: u32, new: u32) -> Self {
        Self { baseline: self.baseline.with_passes(baseline), new: self.new.with_passes(new) }
    }

    /// Exchanges the two sides.
    #[must_use]
    pub fn mirrored(self) -> Self {
        Self { baseline: self.new, new: self.baseline }
    }
}

/// Standard normal quantile of a two-sided interval at 95 %.
pub const TWO_SIDED_95: f64 = 1.959_963_984_540_054;

/// Standard normal quantile of a bound at 95 % on one side.
pub const ONE_SIDED_95: f64 = 1.644_853_626_951_472_2;

/// A closed interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// Wilson's score interval for the pass rate, between 0 and 1; `None` without runs.
pub fn wilson(tally: Tally, quantile: f64) -> Option<Interval> {
    let rate = tally.rate()?;
    let runs = f64::from(tally.runs());
    let square = quantile * quantile;
    let middle = rate + square / (2.0 * runs);
    let half = quantile * (rate * (1.0 - rate) / runs + square / (4.0 * runs * runs)).sqrt();
    let scale = 1.0 + square / runs;
    // Exact bounds are within 0 and 1; only rounding can leave that range.
    Some(Interval { low: ((middle - half) / scale).max(0.0), high: ((middle + half) / scale).min(1.0) })
}

/// Newcombe's interval for the fall, baseline's rate minus new's, between −1 and 1; `None` if a side has no run.
pub fn newcombe(case: CaseTallies, quantile: f64) -> Option<Interval> {
    let (old, new) = (case.baseline.rate()?, case.new.rate()?);
    let (of_old, of_new) = (wilson(case.baseline, quantile)?, wilson(case.new, quantile)?);
    Some(Interval {
        low: (old - new) - (old - of_old.low).hypot(of_new.high - new),
        high: (old - new) + (of_old.high - old).hypot(new - of_new.low),
    })
}

/// The factor within which two probabilities are equal.
pub(super) const TIE: f64 = 1.0 + 1e-9;

/// Whether a p-value is at most the level, within rounding errors.
pub fn is_at_most(p: f64, level: f64) -> bool {
    p <= level * TIE
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn near(interval: Option<Interval>, low: f64, high: f64) -> bool {
        interval.is_some_and(|at| (at.low - low).abs() < 5e-5 && (at.high - high).abs() < 5e-5)
    }

    #[test]
    fn rates_have_the_intervals_of_the_published_table() {
        // Newcombe, "Two-sided confidence intervals for the single proportion", 1998, table I, method 3.
        for (passed, runs, low, high) in
            [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)]
        {
            assert!(near(wilson(Tally::new(passed, runs - passed), TWO_SIDED_95), low, high), "{passed} of {runs}");
        }
        assert_eq!(wilson(Tally::default(), TWO_SIDED_95), None);
    }

    #[test]
    fn differences_have_the_intervals_of_the_published_table() {
        // Newcombe, "Interval estimation for the difference between independent proportions", 1998, table II, method 10.
        for ((passed, runs), (new_passed, new_runs), low, high) in [
            ((56, 70), (48, 80), 0.0524, 0.3339),
            ((9, 10), (3, 10), 0.1705, 0.8090),
            ((10, 10), (0, 20), 0.6791, 1.0),
            ((10, 10), (0, 10), 0.6075, 1.0),
        ] {
            let case = CaseTallies {
                baseline: Tally::new(passed, runs - passed),
                new: Tally::new(new_passed, new_runs - new_passed),
            };
            assert!(near(newcombe(case, TWO_SIDED_95), low, high), "{:?}", newcombe(case, TWO_SIDED_95));
        }
    }

    proptest! {
        #[test]
        fn intervals_hold_what_was_seen_and_mirror((a, b) in (0u32..40, 0u32..40), (c, d) in (0u32..40, 0u32..40)) {
            let case = CaseTallies { baseline: Tally::new(a, b), new: Tally::new(c, d) };
            prop_assume!(case.drop().is_some());
            let seen = case.drop().unwrap();
            let (interval, mirrored) =
                (newcombe(case, TWO_SIDED_95).unwrap(), newcombe(case.mirrored(), TWO_SIDED_95).unwrap());
            prop_assert!((-1.0 - 1e-9..=seen + 1e-9).contains(&interval.low), "{interval:?}");
            prop_assert!((seen - 1e-9..=1.0 + 1e-9).contains(&interval.high), "{interval:?}");
            prop_assert!((interval.low + mirrored.high).abs() < 1e-9);
        }
    }

    #[test]
    fn a_p_value_that_equals_the_level_reaches_it_in_spite_of_rounding() {
        // 1/20 as a sum of fractions is not the nearest number to 0.05.
        let p: f64 = [1.0 / 60.0; 3].iter().sum();
        assert!(is_at_most(p, 0.05) && is_at_most(0.050_000_000_000_000_03, 0.05));
        assert!(!is_at_most(0.050_001, 0.05));
    }
}
