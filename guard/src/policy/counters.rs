//! What the rules count between calls: budgets, rate limits, breakers and duplicates. Its memory is bounded.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use counterproof_artifact::Sha256Digest;
use counterproof_ledger::event::BreakerTrip;

use super::model::{Breaker, BreakerThreshold, Budget, Effect, RateLimit, Rule, Scope};

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
        // Nothing is dropped to make room: an agent that calls many tools could reset the budget of one.
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

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Spent {
    pub(super) calls: u64,
    pub(super) cost_units: u64,
}

impl Spent {
    pub(super) fn with_call(self, budget: &Budget) -> Self {
        Self {
            // Costs come from the policy, and a sum beyond 64 bits must refuse the call and not start at zero.
            calls: self.calls.saturating_add(1),
            cost_units: self.cost_units.saturating_add(budget.cost_units_per_call),
        }
    }

    pub(super) fn exceeds(self, budget: &Budget) -> bool {
        budget.limit_calls.is_some_and(|limit| self.calls > limit)
            || budget.limit_cost_units.is_some_and(|limit| self.cost_units > limit)
    }
}

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

    pub(super) fn refilled(self, limit: &RateLimit, now: Duration) -> Self {
        // Only whole periods count.
        let period = u128::from(limit.refill_period_ms.max(1)) * 1_000_000;
        let periods = now.saturating_sub(self.refilled).as_nanos() / period;
        // Sums of 128 bits: a policy may state any 64-bit numbers.
        let added = periods.saturating_mul(u128::from(limit.refill_tokens));
        let tokens = u128::from(self.tokens).saturating_add(added).min(u128::from(limit.capacity));
        let passed = u64::try_from(periods * period).map_or(now, |nanos| self.refilled + Duration::from_nanos(nanos));
        Self { tokens: u64::try_from(tokens).unwrap_or(limit.capacity), refilled: passed }
    }
}

/// Largest number of times in the windows of all rules, of about 150 bytes each.
const MAX_WINDOW_TIMES: usize = 1 << 17;

const MAX_SCOPES: usize = 1 << 16;

#[derive(Debug)]
pub(super) enum RuleState {
    Stateless,
    Budget(Counters<Spent>),
    RateLimit(Counters<Bucket>),
    Breaker(BreakerWindows),
    Dedupe(SlidingWindow<(ScopeKey, Sha256Digest)>),
}

impl RuleState {
    pub(super) fn new(rule: &Rule, share: usize) -> Self {
        // Equal shares: a rule must not take the memory of another one.
        let scopes = MAX_SCOPES / share;
        match &rule.effect {
            Effect::Allow { .. } | Effect::Deny(_) | Effect::Tag(_) => RuleState::Stateless,
            Effect::Budget(_) => RuleState::Budget(Counters::new(scopes)),
            Effect::RateLimit(_) => RuleState::RateLimit(Counters::new(scopes)),
            Effect::Breaker(breaker) => RuleState::Breaker(BreakerWindows::new(breaker, MAX_WINDOW_TIMES / share)),
            Effect::Dedupe(dedupe) => {
                let window = Duration::from_millis(dedupe.window_ms);
                RuleState::Dedupe(SlidingWindow::new(window, 1, MAX_WINDOW_TIMES / share))
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct BreakerWindows {
    repeats: Option<SlidingWindow<(ScopeKey, Sha256Digest)>>,
    errors: Option<SlidingWindow<ScopeKey>>,
}

pub(super) struct BreakerCounts {
    repeats: Option<(u64, BreakerThreshold)>,
    errors: Option<(u64, BreakerThreshold)>,
}

impl BreakerWindows {
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

    pub(super) fn count_call(
        &mut self,
        breaker: &Breaker,
        scope: ScopeKey,
        args_hash: Sha256Digest,
        now: Duration,
    ) -> BreakerCounts {
        let key = (scope, args_hash);
        let repeats = self.repeats.as_mut().zip(breaker.repeats).map(|(window, threshold)| {
            // Before the count: the call that reaches the threshold is itself refused.
            window.add(key, now);
            (window.count(&key, now), threshold)
        });
        // Errors count by the scope alone: five failed calls of one tool with different arguments are five errors.
        let errors = self.errors.as_ref().zip(breaker.errors);
        BreakerCounts { repeats, errors: errors.map(|(window, threshold)| (window.count(&scope, now), threshold)) }
    }

    pub(super) fn count_error(&mut self, scope: ScopeKey, now: Duration) {
        if let Some(errors) = &mut self.errors {
            errors.add(scope, now);
        }
    }
}

impl BreakerCounts {
    /// Returns the breaker that trips. Repeats come first.
    pub(super) fn trip(&self, rule: &Rule) -> Option<BreakerTrip> {
        // Equal calls come first: they are the more specific reason.
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

/// A scope of one run. Names are hashed, so that long ones take no memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum ScopeKey {
    Run,
    Names(Sha256Digest),
    /// All names beyond the largest number of keys.
    Others,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ScopeKeys {
    tool: ScopeKey,
    server_tool: ScopeKey,
}

impl ScopeKeys {
    pub(super) fn new(server_name: &str, tool_name: &str) -> Self {
        Self { tool: hash("", tool_name), server_tool: hash(server_name, tool_name) }
    }

    pub(super) const fn key(&self, scope: Scope) -> ScopeKey {
        match scope {
            Scope::Run => ScopeKey::Run,
            Scope::Tool => self.tool,
            Scope::ServerTool => self.server_tool,
        }
    }
}

fn hash(server_name: &str, tool_name: &str) -> ScopeKey {
    // The length separates the names.
    let text = format!("{}:{server_name}{tool_name}", server_name.len());
    ScopeKey::Names(Sha256Digest::from_bytes(text.as_bytes()))
}

/// The newest times of each key within a window.
///
/// If there are too many times, those of the keys that were used longest ago are dropped. The key that was just used is never
/// dropped, so calls in a tight loop are always counted.
#[derive(Debug)]
pub(super) struct SlidingWindow<K> {
    window: Duration,
    max_per_key: usize,
    max_times: usize,
    entries: HashMap<K, Entry>,
    by_use: BTreeMap<u64, K>,
    uses: u64,
    times: usize,
}

#[derive(Debug)]
struct Entry {
    times: VecDeque<Duration>,
    last_use: u64,
}

impl<K: Copy + Eq + Hash> SlidingWindow<K> {
    /// Creates a window that counts up to `max_per_key` for a key, and holds about `max_times` times.
    pub(super) fn new(window: Duration, max_per_key: usize, max_times: usize) -> Self {
        let max_per_key = max_per_key.max(1);
        Self {
            window,
            max_per_key,
            max_times: max_times.max(max_per_key),
            entries: HashMap::new(),
            by_use: BTreeMap::new(),
            uses: 0,
            times: 0,
        }
    }

    pub(super) fn count(&self, key: &K, now: Duration) -> u64 {
        let times = self.entries.get(key).map(|entry| entry.times.iter());
        times.map_or(0, |times| times.filter(|time| self.contains(**time, now)).count() as u64)
    }

    pub(super) fn add(&mut self, key: K, now: Duration) {
        self.uses += 1;
        let entry = self.entries.entry(key).or_insert(Entry { times: VecDeque::new(), last_use: self.uses });
        self.by_use.remove(&entry.last_use);
        entry.last_use = self.uses;
        self.by_use.insert(self.uses, key);
        // Only the newest times matter: as many as the threshold decide whether it is reached.
        if entry.times.len() == self.max_per_key {
            entry.times.pop_front();
        } else {
            self.times += 1;
        }
        entry.times.push_back(now);
        self.drop_old(now);
    }

    fn contains(&self, time: Duration, now: Duration) -> bool {
        // Times may be equal, and are never in the future: `Engine::advance` does not let time run backwards.
        now.saturating_sub(time) < self.window
    }

    /// Drops keys without times in the window, and then those that were used longest ago until the rest fits.
    fn drop_old(&mut self, now: Duration) {
        while let Some((&last_use, &key)) = self.by_use.first_key_value() {
            let newest = self.entries.get(&key).and_then(|entry| entry.times.back());
            let is_old = newest.is_none_or(|time| !self.contains(*time, now));
            // The key that was just used stays whatever the limit is, so that a tight loop is always counted.
            let is_last = last_use == self.uses;
            if is_last || !is_old && self.times <= self.max_times {
                return;
            }
            self.by_use.remove(&last_use);
            self.times -= self.entries.remove(&key).map_or(0, |entry| entry.times.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use counterproof_artifact::Sha256Digest;
    use proptest::prelude::*;

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

    const fn ms(number: u64) -> Duration {
        Duration::from_millis(number)
    }

    #[test]
    fn times_leave_the_window_when_its_length_has_passed() {
        let mut window = SlidingWindow::new(ms(100), 5, 1000);
        window.add(1, ms(0));
        window.add(1, ms(50));
        assert_eq!(window.count(&1, ms(99)), 2);
        assert_eq!(window.count(&1, ms(100)), 1);
        assert_eq!(window.count(&1, ms(150)), 0);
        assert_eq!(window.count(&2, ms(50)), 0);
    }

    #[test]
    fn a_million_keys_take_bounded_memory_and_the_newest_stay() {
        let mut window = SlidingWindow::new(ms(1_000_000), 3, 1000);
        for key in 0..1_000_000_u64 {
            window.add(key, ms(key / 10));
        }
        assert!(window.entries.len() <= 1000 && window.by_use.len() == window.entries.len());
        assert_eq!(window.count(&999_999, ms(100_000)), 1);
        assert_eq!(window.count(&999_500, ms(100_000)), 1);
    }

    proptest! {
        #[test]
        fn counts_equal_those_of_a_list_of_all_times(
            calls in prop::collection::vec((0_u8..4, 0_u64..60), 0..80), window in 1_u64..200, limit in 1_usize..6,
        ) {
            let mut tested = SlidingWindow::new(ms(window), limit, 1000);
            let (mut all, mut now) = (Vec::new(), 0);
            for (key, step) in calls {
                now += step;
                tested.add(key, ms(now));
                all.push((key, now));
                let expected = all.iter().filter(|(other, time)| *other == key && now - time < window).count();
                prop_assert_eq!(tested.count(&key, ms(now)), expected.min(limit) as u64);
            }
            prop_assert_eq!(tested.times, tested.entries.values().map(|entry| entry.times.len()).sum::<usize>());
        }
    }
}
