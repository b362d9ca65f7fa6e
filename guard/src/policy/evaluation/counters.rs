//! Counters by scope, for budgets and rate limits. Their number is bounded.

use std::collections::HashMap;
use std::time::Duration;

use super::scope::ScopeKey;
use crate::policy::model::{Budget, RateLimit};

/// One value for each scope. Scopes beyond the largest number share one value, so existing values are never dropped. An agent
/// that calls many tools cannot reset the budget of one.
#[derive(Debug)]
pub(super) struct Counters<T> {
    values: HashMap<ScopeKey, T>,
    max_scopes: usize,
}

impl<T: Copy> Counters<T> {
    pub(super) fn new(max_scopes: usize) -> Self {
        Self { values: HashMap::new(), max_scopes }
    }

    fn key(&self, key: ScopeKey) -> ScopeKey {
        let is_full = self.values.len() >= self.max_scopes;
        if is_full && !self.values.contains_key(&key) { ScopeKey::Others } else { key }
    }

    pub(super) fn get(&self, key: ScopeKey) -> Option<T> {
        self.values.get(&self.key(key)).copied()
    }

    pub(super) fn set(&mut self, key: ScopeKey, value: T) {
        self.values.insert(self.key(key), value);
    }
}

/// What a budget has spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Spent {
    pub(super) calls: u64,
    pub(super) cost_units: u64,
}

impl Spent {
    pub(super) fn with_call(self, budget: &Budget) -> Self {
        Self {
            calls: self.calls.saturating_add(1),
            cost_units: self.cost_units.saturating_add(budget.cost_units_per_call),
        }
    }

    pub(super) fn exceeds(self, budget: &Budget) -> bool {
        budget.limit_calls.is_some_and(|limit| self.calls > limit)
            || budget.limit_cost_units.is_some_and(|limit| self.cost_units > limit)
    }
}

/// A token bucket.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bucket {
    pub(super) tokens: u64,
    /// The time of the last refill: a whole number of periods after the first use.
    refilled: Duration,
}

impl Bucket {
    pub(super) fn full(limit: &RateLimit, now: Duration) -> Self {
        Self { tokens: limit.capacity, refilled: now }
    }

    /// Adds the tokens of all periods that have passed. Only whole periods count.
    pub(super) fn refilled(self, limit: &RateLimit, now: Duration) -> Self {
        let period = u128::from(limit.refill_period_ms.max(1)) * 1_000_000;
        let periods = now.saturating_sub(self.refilled).as_nanos() / period;
        let added = periods.saturating_mul(u128::from(limit.refill_tokens));
        let tokens = u128::from(self.tokens).saturating_add(added).min(u128::from(limit.capacity));
        let passed = u64::try_from(periods * period).map_or(now, |nanos| self.refilled + Duration::from_nanos(nanos));
        Self { tokens: u64::try_from(tokens).unwrap_or(limit.capacity), refilled: passed }
    }
}

#[cfg(test)]
mod tests {
    use counterproof_artifact::Sha256Digest;

    use super::*;

    fn key(number: u32) -> ScopeKey {
        ScopeKey::Names(Sha256Digest::from_bytes(&number.to_le_bytes()))
    }

    #[test]
    fn scopes_beyond_the_limit_share_a_value_and_reset_none() {
        let mut counters = Counters::new(2);
        counters.set(key(0), 5);
        for number in 1..1000 {
            let value = counters.get(key(number)).unwrap_or(0);
            counters.set(key(number), value + 1);
        }
        assert_eq!((counters.get(key(0)), counters.get(key(1))), (Some(5), Some(1)));
        assert_eq!(counters.get(key(2000)), Some(998));
        assert!(counters.values.len() <= 3);
    }
}
