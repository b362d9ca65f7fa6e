//! Sliding windows by key, for breakers and duplicates. Their size is bounded.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

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
    /// Keys by their last use.
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

    /// Returns the number of times of a key within the window that ends now.
    pub(super) fn count(&self, key: &K, now: Duration) -> u64 {
        let times = self.entries.get(key).map(|entry| entry.times.iter());
        times.map_or(0, |times| times.filter(|time| self.contains(**time, now)).count() as u64)
    }

    /// Adds a time, which is not before any other.
    pub(super) fn add(&mut self, key: K, now: Duration) {
        self.uses += 1;
        let entry = self.entries.entry(key).or_insert(Entry { times: VecDeque::new(), last_use: self.uses });
        self.by_use.remove(&entry.last_use);
        entry.last_use = self.uses;
        self.by_use.insert(self.uses, key);
        if entry.times.len() == self.max_per_key {
            entry.times.pop_front();
        } else {
            self.times += 1;
        }
        entry.times.push_back(now);
        self.drop_old(now);
    }

    fn contains(&self, time: Duration, now: Duration) -> bool {
        now.saturating_sub(time) < self.window
    }

    /// Drops keys without times in the window, and then those that were used longest ago until the rest fits.
    fn drop_old(&mut self, now: Duration) {
        while let Some((&last_use, &key)) = self.by_use.first_key_value() {
            let newest = self.entries.get(&key).and_then(|entry| entry.times.back());
            let is_old = newest.is_none_or(|time| !self.contains(*time, now));
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
    use proptest::prelude::*;

    use super::*;

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
