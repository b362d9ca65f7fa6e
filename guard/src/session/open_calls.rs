//! The calls that were forwarded and have not ended.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use counterproof_artifact::Sha256Digest;
use counterproof_ledger::event::{CallId, CallRef};

use super::Refusal;

/// Most calls that wait for input. Beyond it, the oldest are given up.
const MAX_WAITING: usize = 1000;

/// How long a call waits for input.
const MAX_WAIT: Duration = Duration::from_hours(1);

/// How often a request may continue one call. A further request is a new call, which rules count.
const MAX_CONTINUATIONS: u32 = 100;

/// The calls of a session that have not ended.
#[derive(Debug, Default)]
pub(super) struct OpenCalls {
    calls: HashMap<CallId, OpenCall>,
    /// The refused calls whose answers are not written yet.
    refusals: Vec<Refusal>,
}

/// A call that was forwarded.
#[derive(Debug)]
pub(super) struct OpenCall {
    pub(super) call: CallRef,
    /// The name in the request. That of the record is redacted.
    pub(super) tool_name: String,
    pub(super) started: Instant,
    pub(super) waiting: Option<WaitsForInput>,
    continuations: u32,
}

/// A call whose server asked the client for input. The client sends the call again, with the input.
#[derive(Debug)]
pub(super) struct WaitsForInput {
    request_state: Option<String>,
    since: Instant,
}

impl OpenCalls {
    pub(super) fn insert(&mut self, call: CallRef, tool_name: &str) {
        let tool_name = tool_name.to_owned();
        let open = OpenCall { call, tool_name, started: Instant::now(), waiting: None, continuations: 0 };
        self.calls.insert(open.call.call_id.clone(), open);
    }

    pub(super) fn insert_refusal(&mut self, refusal: Refusal) {
        self.refusals.push(refusal);
    }

    /// Removes a refusal. Returns false if it is not open.
    pub(super) fn take_refusal(&mut self, id: &CallId) -> bool {
        let place = self.refusals.iter().position(|refusal| refusal.call.call_id == *id);
        place.map(|place| self.refusals.swap_remove(place)).is_some()
    }

    pub(super) fn take_refusals(&mut self) -> Vec<Refusal> {
        std::mem::take(&mut self.refusals)
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
            call.waiting = Some(WaitsForInput { request_state, since: Instant::now() });
        }
    }

    /// Removes and returns waiting calls that no request will continue.
    pub(super) fn take_abandoned(&mut self) -> Vec<OpenCall> {
        let mut waiting: Vec<(Instant, CallId)> =
            self.calls.iter().filter_map(|(id, call)| Some((call.waiting.as_ref()?.since, id.clone()))).collect();
        waiting.sort();
        let excess = waiting.len().saturating_sub(MAX_WAITING);
        let is_abandoned =
            |(index, (since, _)): &(usize, (Instant, CallId))| *index < excess || since.elapsed() >= MAX_WAIT;
        let abandoned = waiting.into_iter().enumerate().filter(is_abandoned);
        abandoned.filter_map(|(_, (_, id))| self.calls.remove(&id)).collect()
    }

    /// Returns the waiting call that a request continues: the same tool, the same arguments and the state that the server gave.
    /// Returns `None` for other requests, also if they have the form of a continuation.
    pub(super) fn resume(&mut self, tool: &str, hash: &Sha256Digest, request_state: Option<&str>) -> Option<CallId> {
        let mut found = self.calls.values_mut().filter(|open| {
            open.waiting.as_ref().is_some_and(|waiting| waiting.request_state.as_deref() == request_state)
                && open.continuations < MAX_CONTINUATIONS
                && open.tool_name == tool
                && open.call.args_hash == *hash
        });
        // The oldest, if several wait: ids are ordered by time.
        let first = found.next()?;
        let open =
            found.fold(first, |oldest, open| if open.call.call_id < oldest.call.call_id { open } else { oldest });
        open.waiting = None;
        open.continuations += 1;
        Some(open.call.call_id.clone())
    }
}
