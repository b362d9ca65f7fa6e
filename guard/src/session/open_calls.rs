//! The calls that were forwarded and have not ended.

use std::collections::HashMap;
use std::time::Instant;

use counterproof_artifact::Sha256Digest;
use counterproof_ledger::event::{CallId, CallRef};

/// The calls of a session that have not ended.
#[derive(Debug, Default)]
pub(super) struct OpenCalls {
    calls: HashMap<CallId, OpenCall>,
}

/// A call that was forwarded.
#[derive(Debug)]
pub(super) struct OpenCall {
    pub(super) call: CallRef,
    pub(super) started: Instant,
    pub(super) waiting: Option<WaitsForInput>,
}

/// A call whose server asked the client for input. The client sends the call again, with the input.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WaitsForInput {
    request_state: Option<String>,
}

impl OpenCalls {
    pub(super) fn insert(&mut self, call: CallRef) {
        let open = OpenCall { call, started: Instant::now(), waiting: None };
        self.calls.insert(open.call.call_id.clone(), open);
    }

    pub(super) fn take(&mut self, id: &CallId) -> Option<OpenCall> {
        self.calls.remove(id)
    }

    pub(super) fn take_all(&mut self) -> Vec<OpenCall> {
        let mut calls: Vec<_> = self.calls.drain().map(|(_, call)| call).collect();
        calls.sort_by(|a, b| a.call.call_id.cmp(&b.call.call_id));
        calls
    }

    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    /// Marks a call as waiting for input of the client.
    pub(super) fn wait_for_input(&mut self, id: &CallId, request_state: Option<String>) {
        if let Some(call) = self.calls.get_mut(id) {
            call.waiting = Some(WaitsForInput { request_state });
        }
    }

    /// Returns the waiting call that a request continues: the same tool, the same arguments and the state that the server gave.
    /// Returns `None` for other requests, also if they have the form of a continuation.
    pub(super) fn resume(&mut self, tool: &str, hash: &Sha256Digest, request_state: Option<&str>) -> Option<CallId> {
        let wanted = WaitsForInput { request_state: request_state.map(str::to_owned) };
        let mut found = self.calls.values_mut().filter(|open| {
            open.waiting.as_ref() == Some(&wanted) && open.call.tool_name == tool && open.call.args_hash == *hash
        });
        // The oldest, if several wait: ids are ordered by time.
        let first = found.next()?;
        let open =
            found.fold(first, |oldest, open| if open.call.call_id < oldest.call.call_id { open } else { oldest });
        open.waiting = None;
        Some(open.call.call_id.clone())
    }
}
