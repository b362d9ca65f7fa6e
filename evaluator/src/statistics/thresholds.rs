//! The statistical thresholds: the `[statistics]` table of `counterproof.toml`. `docs/statistics.md` gives the reasons for the
//! defaults.

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
}

impl From<Share> for Fraction {
    fn from(share: Share) -> Self {
        Self(share.value())
    }
}

/// The thresholds of the tiers. A drop is the observed pass rate of baseline minus the one of new.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Thresholds {
    /// The false alarm rate: the maximum share of nights in which the statistics fail the gate although nothing changed, over all
    /// cases and the suite together.
    pub alpha: Fraction,
    /// The minimum drop of a regression. A smaller drop is not reported as one, even if it is significant.
    pub min_drop: Fraction,
    /// The minimum pass rate of baseline for a regression.
    pub min_baseline: Fraction,
    /// The maximum uncorrected p-value of the tier `likely`.
    pub likely_p: Fraction,
    /// The minimum drop of the tier `likely`.
    pub likely_drop: Fraction,
    /// The minimum drop of the tier `watch`, which applies at any p-value.
    pub watch_drop: Fraction,
    /// The drop that must be excluded with 95 % confidence for the tier `steady`.
    pub relevant_drop: Fraction,
    /// The probability with which the suggested number of further runs decides a case.
    pub power: Fraction,
    /// The maximum number of further runs that is suggested.
    pub more_runs_up_to: u32,
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
        }
    }
}

impl Thresholds {
    /// The same thresholds with another false alarm rate.
    #[must_use]
    pub(crate) fn with_alpha(&self, alpha: f64) -> Self {
        Self { alpha: Fraction(alpha), ..self.clone() }
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
