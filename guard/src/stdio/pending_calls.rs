//! The forwarded calls by the ids of their requests.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use counterproof_ledger::event::CallId;

use crate::mcp::RequestId;

/// The calls that wait for a response.
#[derive(Debug, Default)]
pub struct PendingCalls {
    /// A client must not use an id twice at the same time. If it does, the first response belongs to the first request.
    calls: Mutex<HashMap<RequestId, VecDeque<CallId>>>,
}

impl PendingCalls {
    /// Adds a call.
    pub fn insert(&self, id: RequestId, call: CallId) {
        self.calls().entry(id).or_default().push_back(call);
    }

    /// Removes and returns the call that a response or a cancellation names.
    pub fn take(&self, id: &RequestId) -> Option<CallId> {
        let mut calls = self.calls();
        let queue = calls.get_mut(id)?;
        let call = queue.pop_front();
        if queue.is_empty() {
            calls.remove(id);
        }
        call
    }

    /// True if no call waits.
    pub fn is_empty(&self) -> bool {
        self.calls().is_empty()
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<RequestId, VecDeque<CallId>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
