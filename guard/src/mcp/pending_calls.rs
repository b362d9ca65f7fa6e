//! The forwarded calls by the ids of their requests.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use counterproof_ledger::event::CallId;

use super::RequestId;

/// The calls that wait for a response. The key of a transport is at least the id of the request.
#[derive(Debug)]
pub struct PendingCalls<K = RequestId> {
    /// A client must not use an id twice at the same time. If it does, the first response belongs to the first request.
    calls: Mutex<HashMap<K, VecDeque<CallId>>>,
}

impl<K> Default for PendingCalls<K> {
    fn default() -> Self {
        Self { calls: Mutex::default() }
    }
}

impl<K: Eq + Hash> PendingCalls<K> {
    /// Adds a call.
    pub fn insert(&self, key: K, call: CallId) {
        self.calls().entry(key).or_default().push_back(call);
    }

    /// Removes and returns the call that a response or a cancellation names.
    pub fn take(&self, key: &K) -> Option<CallId> {
        let mut calls = self.calls();
        let queue = calls.get_mut(key)?;
        let call = queue.pop_front();
        if queue.is_empty() {
            calls.remove(key);
        }
        call
    }

    /// Removes and returns all calls whose keys are selected.
    pub fn take_all(&self, is_selected: impl Fn(&K) -> bool) -> Vec<CallId> {
        self.calls().extract_if(|key, _| is_selected(key)).flat_map(|(_, queue)| queue).collect()
    }

    /// Removes a call. Returns false if it does not wait.
    pub fn remove(&self, key: &K, call: &CallId) -> bool {
        let mut calls = self.calls();
        let Some(queue) = calls.get_mut(key) else { return false };
        let before = queue.len();
        queue.retain(|waiting| waiting != call);
        let is_removed = queue.len() < before;
        if queue.is_empty() {
            calls.remove(key);
        }
        is_removed
    }

    /// True if a call waits.
    pub fn is_waiting(&self, key: &K, call: &CallId) -> bool {
        self.calls().get(key).is_some_and(|queue| queue.contains(call))
    }

    /// True if no call waits.
    pub fn is_empty(&self) -> bool {
        self.calls().is_empty()
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<K, VecDeque<CallId>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
