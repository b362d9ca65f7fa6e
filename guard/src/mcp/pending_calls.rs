//! The forwarded requests by their ids, and the calls among them.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use counterproof_ledger::event::CallId;

use super::RequestId;

/// The requests that wait for a response. The key of a transport is at least the id of the request.
#[derive(Debug)]
pub struct PendingCalls<K = RequestId> {
    /// A client must not use an id twice at the same time. If it does, the first response belongs to the first request.
    requests: Mutex<HashMap<K, VecDeque<Option<CallId>>>>,
}

impl<K> Default for PendingCalls<K> {
    fn default() -> Self {
        Self { requests: Mutex::default() }
    }
}

impl<K: Eq + Hash> PendingCalls<K> {
    /// Adds a call.
    pub fn insert(&self, key: K, call: CallId) {
        self.requests().entry(key).or_default().push_back(Some(call));
    }

    /// Adds a request that is no call.
    pub fn insert_other(&self, key: K) {
        self.requests().entry(key).or_default().push_back(None);
    }

    /// Removes the request that a response or a cancellation names. Returns its call, if it is one.
    pub fn take(&self, key: &K) -> Option<CallId> {
        let mut requests = self.requests();
        let queue = requests.get_mut(key)?;
        let call = queue.pop_front();
        if queue.is_empty() {
            requests.remove(key);
        }
        call.flatten()
    }

    /// Removes and returns all calls whose keys are selected.
    pub fn take_all(&self, is_selected: impl Fn(&K) -> bool) -> Vec<CallId> {
        self.requests().extract_if(|key, _| is_selected(key)).flat_map(|(_, queue)| queue).flatten().collect()
    }

    /// Removes a call. Returns false if it does not wait.
    pub fn remove(&self, key: &K, call: &CallId) -> bool {
        let mut requests = self.requests();
        let Some(queue) = requests.get_mut(key) else { return false };
        let before = queue.len();
        queue.retain(|waiting| waiting.as_ref() != Some(call));
        let is_removed = queue.len() < before;
        if queue.is_empty() {
            requests.remove(key);
        }
        is_removed
    }

    pub fn is_waiting(&self, key: &K, call: &CallId) -> bool {
        self.requests().get(key).is_some_and(|queue| queue.iter().flatten().any(|waiting| waiting == call))
    }

    /// True if a request with this key waits.
    pub fn contains(&self, key: &K) -> bool {
        self.requests().contains_key(key)
    }

    /// Returns the calls whose keys are selected.
    pub fn calls_where(&self, is_selected: impl Fn(&K) -> bool) -> Vec<CallId> {
        let requests = self.requests();
        let selected = requests.iter().filter(|(key, _)| is_selected(key));
        selected.flat_map(|(_, queue)| queue.iter().flatten().cloned()).collect()
    }

    /// True if no request waits.
    pub fn is_empty(&self) -> bool {
        self.requests().is_empty()
    }

    /// True if a call waits.
    pub fn has_calls(&self) -> bool {
        self.requests().values().any(|queue| queue.iter().any(Option::is_some))
    }

    fn requests(&self) -> MutexGuard<'_, HashMap<K, VecDeque<Option<CallId>>>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
