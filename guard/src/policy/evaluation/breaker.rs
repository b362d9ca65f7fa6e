//! The windows of a breaker, and when it trips.

use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use counterproof_artifact::Sha256Digest;
use counterproof_ledger::event::BreakerTrip;

use super::scope::ScopeKey;
use super::window::SlidingWindow;
use crate::policy::model::{Breaker, BreakerThreshold, Rule};

#[derive(Debug)]
pub(super) struct BreakerWindows {
    repeats: Option<SlidingWindow<(ScopeKey, Sha256Digest)>>,
    errors: Option<SlidingWindow<ScopeKey>>,
}

/// The counts of a breaker after a call, each with its threshold.
pub(super) struct BreakerCounts {
    repeats: Option<(u64, BreakerThreshold)>,
    errors: Option<(u64, BreakerThreshold)>,
}

impl BreakerWindows {
    /// Creates empty windows, each of about `max_times` times.
    pub(super) fn new(breaker: &Breaker, max_times: usize) -> Self {
        fn window<K: Copy + Eq + Hash>(threshold: BreakerThreshold, max_times: usize) -> SlidingWindow<K> {
            let count = usize::try_from(threshold.count).unwrap_or(usize::MAX);
            SlidingWindow::new(Duration::from_millis(threshold.window_ms), count, max_times)
        }
        Self {
            repeats: breaker.repeats.map(|threshold| window(threshold, max_times)),
            errors: breaker.errors.map(|threshold| window(threshold, max_times)),
        }
    }

    /// Counts a call with these arguments, and returns the counts.
    pub(super) fn count_call(
        &mut self,
        breaker: &Breaker,
        scope: ScopeKey,
        args_hash: Sha256Digest,
        now: Duration,
    ) -> BreakerCounts {
        let key = (scope, args_hash);
        let repeats = self.repeats.as_mut().zip(breaker.repeats).map(|(window, threshold)| {
            window.add(key, now);
            (window.count(&key, now), threshold)
        });
        let errors = self.errors.as_ref().zip(breaker.errors);
        BreakerCounts { repeats, errors: errors.map(|(window, threshold)| (window.count(&scope, now), threshold)) }
    }

    /// Counts a call that ended with an error.
    pub(super) fn count_error(&mut self, scope: ScopeKey, now: Duration) {
        if let Some(errors) = &mut self.errors {
            errors.add(scope, now);
        }
    }
}

impl BreakerCounts {
    /// Returns the breaker that trips. Repeats come first.
    pub(super) fn trip(&self, rule: &Rule) -> Option<BreakerTrip> {
        [("repeat", self.repeats), ("error", self.errors)].into_iter().find_map(|(trigger, counted)| {
            let (count, threshold) = counted?;
            (count >= threshold.count).then(|| BreakerTrip {
                rule_id: rule.id.to_string(),
                trigger: trigger.to_owned(),
                count,
                window_ms: threshold.window_ms,
            })
        })
    }
}

impl fmt::Display for BreakerCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [("equal calls", self.repeats), ("errors", self.errors)];
        let counts = parts.into_iter().filter_map(|(name, counted)| Some((name, counted?)));
        for (index, (name, (count, threshold))) in counts.enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            write!(f, "{comma}{count} of {} {name}", threshold.count)?;
        }
        Ok(())
    }
}
