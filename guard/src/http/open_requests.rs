//! The forwarded calls by the ids of their requests.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use counterproof_ledger::event::CallId;

use crate::mcp::RequestId;

/// Within what an id names one request. Clients of one proxy may use the same ids.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Scope {
    /// A session of the protocol, named by `Mcp-Session-Id`. Its responses may come on any of its streams.
    Session(String),
    /// One request and its response.
    Exchange(u64),
    /// Requests whose responses come on a stream without a session, as in the revision of 2024-11-05.
    Unnamed,
}

/// The calls that wait for a response.
#[derive(Debug, Default)]
pub(super) struct OpenRequests {
    /// A client must not use an id twice at the same time. If it does, the first response belongs to the first request.
    calls: Mutex<HashMap<(Scope, RequestId), VecDeque<CallId>>>,
}

impl OpenRequests {
    pub(super) fn insert(&self, scope: Scope, id: RequestId, call: CallId) {
        self.calls().entry((scope, id)).or_default().push_back(call);
    }

    /// Removes and returns the call that a response or a cancellation names.
    pub(super) fn take(&self, scope: &Scope, id: &RequestId) -> Option<CallId> {
        let mut calls = self.calls();
        let key = (scope.clone(), id.clone());
        let queue = calls.get_mut(&key)?;
        let call = queue.pop_front();
        if queue.is_empty() {
            calls.remove(&key);
        }
        call
    }

    /// Removes a call, if it waits.
    pub(super) fn remove(&self, scope: &Scope, id: &RequestId, call: &CallId) -> bool {
        let mut calls = self.calls();
        let key = (scope.clone(), id.clone());
        let Some(queue) = calls.get_mut(&key) else { return false };
        let before = queue.len();
        queue.retain(|waiting| waiting != call);
        let is_removed = queue.len() < before;
        if queue.is_empty() {
            calls.remove(&key);
        }
        is_removed
    }

    /// True if a call waits.
    pub(super) fn is_waiting(&self, scope: &Scope, id: &RequestId, call: &CallId) -> bool {
        self.calls().get(&(scope.clone(), id.clone())).is_some_and(|queue| queue.contains(call))
    }

    /// Removes and returns all calls of a scope.
    pub(super) fn take_all(&self, scope: &Scope) -> Vec<CallId> {
        let mut calls = self.calls();
        let mut taken = Vec::new();
        calls.retain(|(of, _), queue| {
            let is_taken = of == scope;
            if is_taken {
                taken.extend(queue.drain(..));
            }
            !is_taken
        });
        taken
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<(Scope, RequestId), VecDeque<CallId>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
