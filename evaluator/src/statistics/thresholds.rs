//! What counts as worse: the `[statistics]` table of `counterproof.toml`. `docs/statistics.md` argues for the defaults.

use serde::Deserialize;

/// A share between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Deserialize)]
#[serde(try_from = "f64")]
pub struct Share(f64);

impl Share {
    /// As a number.
    pub const fn value(self) -> f64 {
        self.0
    }
}

/// A number is no share.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{0} is not a share between 0 and 1")]
pub struct ShareError(f64);

impl TryFrom<f64> for Share {
    type Error = ShareError;

    fn try_from(number: f64) -> Result<Self, ShareError> {
        if (0.0..=1.0).contains(&number) { Ok(Self(number)) } else { Err(ShareError(number)) }
    }
}

/// The thresholds of the tiers. Drops are differences of pass rates, baseline minus new, as they were seen.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Thresholds {
    /// In how many nights, at most, the statistics fail the gate though nothing changed: over all cases and the suite together.
    pub alpha: Share,
    /// A case is a regression only where it fell by as much, however sure it is that it fell.
    pub min_drop: Share,
    /// A case is a regression only where the baseline passed as often.
    pub min_baseline: Share,
    /// A case has likely become worse where its own p-value, not corrected, is at most this …
    pub likely_p: Share,
    /// … and it fell by as much.
    pub likely_drop: Share,
    /// A case is to be watched where it fell by as much, whatever its p-value.
    pub watch_drop: Share,
    /// A case is steady where a fall of as much is excluded at 95 %.
    pub relevant_drop: Share,
    /// How likely further runs are to decide a case, for the number of them that is named.
    pub power: Share,
    /// The largest number of further runs that is looked at.
    pub more_runs_up_to: u32,
    /// Rounds that ask all cases where repeats stop when they have decided. The suite is tested on these.
    pub full_rounds: u32,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            alpha: Share(0.05),
            min_drop: Share(0.10),
            min_baseline: Share(0.0),
            likely_p: Share(0.20),
            likely_drop: Share(0.15),
            watch_drop: Share(0.35),
            relevant_drop: Share(0.30),
            power: Share(0.80),
            more_runs_up_to: 100,
            full_rounds: 5,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_read_and_what_is_no_share_is_refused() {
        let read = toml::from_str::<Thresholds>("alpha = 0.01\nmin_drop = 0\nmore_runs_up_to = 20").unwrap();
        assert!((read.alpha.value() - 0.01).abs() < 1e-12 && read.more_runs_up_to == 20);
        assert_eq!(read.watch_drop, Thresholds::default().watch_drop);
        for wrong in ["alpha = 5", "alpha = -0.1", "alpha = nan", "alfa = 0.05", "power = \"high\""] {
            assert!(toml::from_str::<Thresholds>(wrong).is_err(), "{wrong}");
        }
        let error = toml::from_str::<Thresholds>("alpha = 5").unwrap_err().to_string();
        assert!(error.contains("5 is not a share between 0 and 1"), "{error}");
    }
}
