//! How often a case passed.

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
    /// The observed fall of the pass rate, negative for a rise; `None` where a side has no run.
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
