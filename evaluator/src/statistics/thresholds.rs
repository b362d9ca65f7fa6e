//! What counts as worse: the `[statistics]` table of `counterproof.toml`. `docs/statistics.md` argues for the defaults.

use counterproof_artifact::Share;
use serde::Deserialize;

/// A number from 0 to 1. Parsed as a [`Share`], but without its resolution, which is too coarse for a significance level that
/// is divided by the number of tests.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Deserialize)]
#[serde(from = "Share")]
pub struct Fraction(f64);

impl Fraction {
    /// Returns the number.
    pub const fn value(self) -> f64 {
        self.0
    }

    /// Divides the fraction into equal parts. A divisor of zero leaves it unchanged.
    #[must_use]
    pub fn divided_by(self, parts: usize) -> Self {
        Self(self.0 / parts.max(1) as f64)
    }
}

impl From<Share> for Fraction {
    fn from(share: Share) -> Self {
        Self(share.value())
    }
}

/// The thresholds of the tiers. Drops are differences of pass rates, baseline minus new, as they were seen.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Thresholds {
    /// In how many nights, at most, the statistics fail the gate though nothing changed: over all cases and the suite together.
    pub alpha: Fraction,
    /// A case is a regression only where it fell by as much, however sure it is that it fell.
    pub min_drop: Fraction,
    /// A case is a regression only where the baseline passed as often.
    pub min_baseline: Fraction,
    /// A case has likely become worse where its own p-value, not corrected, is at most this …
    pub likely_p: Fraction,
    /// … and it fell by as much.
    pub likely_drop: Fraction,
    /// A case is to be watched where it fell by as much, whatever its p-value.
    pub watch_drop: Fraction,
    /// A case is steady where a fall of as much is excluded at 95 %.
    pub relevant_drop: Fraction,
    /// How likely further runs are to decide a case, for the number of them that is named.
    pub power: Fraction,
    /// The largest number of further runs that is looked at.
    pub more_runs_up_to: u32,
    /// Rounds that ask all cases where repeats stop when they have decided. The suite is tested on these.
    pub full_rounds: u32,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            alpha: Fraction(0.05),
            min_drop: Fraction(0.10),
            min_baseline: Fraction(0.0),
            likely_p: Fraction(0.20),
            likely_drop: Fraction(0.15),
            watch_drop: Fraction(0.35),
            relevant_drop: Fraction(0.30),
            power: Fraction(0.80),
            more_runs_up_to: 100,
            full_rounds: 5,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_numbers_or_percentages_from_0_to_1() {
        let read = toml::from_str::<Thresholds>("alpha = 0.01\nmin_drop = 0\nmore_runs_up_to = 20").unwrap();
        assert!((read.alpha.value() - 0.01).abs() < 1e-12 && read.more_runs_up_to == 20);
        let percentages =
            toml::from_str::<Thresholds>("alpha = \"1 %\"\nmin_drop = \"0 %\"\nmore_runs_up_to = 20").unwrap();
        assert_eq!(read, percentages);
        assert_eq!(read.watch_drop, Thresholds::default().watch_drop);
        for wrong in ["alpha = 5", "alpha = -0.1", "alpha = nan", "alfa = 0.05", "power = \"high\""] {
            assert!(toml::from_str::<Thresholds>(wrong).is_err(), "{wrong}");
        }
        let error = toml::from_str::<Thresholds>("alpha = 5").unwrap_err().to_string();
        assert!(error.contains("5 is not a share from 0 to 1"), "{error}");
    }
}
