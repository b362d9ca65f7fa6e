//! Calls whose response can come on another stream, and responses that come before the status of their request.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use counterproof_ledger::event::{CallId, CallStatus, ErrorClass};

use super::messages::{CollectedMessage, OpenRequests, Scope, ServerMessage};
use crate::mcp::RequestId;
use crate::session::{CallResult, Session};

/// The calls that no exchange ends. Those that have ended elsewhere meanwhile are still in it.
#[derive(Debug, Default)]
pub(super) struct DetachedCalls(Mutex<HashMap<Scope, DetachedSession>>);

#[derive(Debug)]
struct DetachedSession {
    calls: Vec<(RequestId, CallId)>,
    streams: usize,
    seen: Instant,
}

impl Default for DetachedSession {
    fn default() -> Self {
        Self { calls: Vec::new(), streams: 0, seen: Instant::now() }
    }
}

impl DetachedCalls {
    pub(super) fn add(&self, scope: &Scope, calls: Vec<(RequestId, CallId)>, open: &OpenRequests) {
        self.update(scope, |detached| {
            detached.calls.extend(calls);
            // Calls that have ended elsewhere are dropped here, so that the list does not grow with the session.
            detached.calls.retain(|(id, call)| open.is_waiting(&(scope.clone(), id.clone()), call));
        });
    }

    pub(super) fn stream_starts(&self, scope: &Scope) {
        self.update(scope, |detached| detached.streams += 1);
    }

    pub(super) fn stream_ends(&self, scope: &Scope) {
        self.update(scope, |detached| detached.streams = detached.streams.saturating_sub(1));
    }

    pub(super) fn end_all(&self, scope: &Scope, session: &Session, open: &OpenRequests) {
        let calls = self.scopes().get_mut(scope).map(|detached| std::mem::take(&mut detached.calls));
        for (id, call) in calls.unwrap_or_default() {
            if open.remove(&(scope.clone(), id), &call) {
                let message = "the server has ended the session";
                session.end(&call, CallResult::unanswered(CallStatus::Error, ErrorClass::Transport, message));
            }
        }
    }

    pub(super) fn end_abandoned(&self, after: Duration, session: &Session, open: &OpenRequests) {
        // A client may lose its stream for a while, and ask for the rest of it later.
        let is_abandoned = |detached: &DetachedSession| detached.streams == 0 && detached.seen.elapsed() >= after;
        let abandoned: Vec<_> = self.scopes().extract_if(|_, detached| is_abandoned(detached)).collect();
        for (scope, detached) in abandoned {
            for (id, call) in detached.calls {
                if open.remove(&(scope.clone(), id), &call) {
                    session.end(&call, CallResult::cancelled());
                }
            }
        }
    }

    fn update(&self, scope: &Scope, change: impl FnOnce(&mut DetachedSession)) {
        let mut scopes = self.scopes();
        let detached = scopes.entry(scope.clone()).or_default();
        change(detached);
        detached.seen = Instant::now();
        if detached.streams == 0 && detached.calls.is_empty() {
            scopes.remove(scope);
        }
    }

    fn scopes(&self) -> MutexGuard<'_, HashMap<Scope, DetachedSession>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Most responses that wait for the status of their requests. Beyond it, the oldest are dropped.
const MAX_WAITING: usize = 16;

#[derive(Debug, Default)]
pub(super) struct EarlyResponses(Mutex<VecDeque<EarlyResponse>>);

#[derive(Debug)]
struct EarlyResponse {
    /// The calls that it may answer: clients can use the same id at the same time.
    calls: Vec<CallId>,
    message: CollectedMessage,
}

impl EarlyResponses {
    /// Records the ends of the calls that a message on a stream without a session answers.
    pub(super) fn record(&self, session: &Session, open: &OpenRequests, message: &CollectedMessage) {
        // Locked before the search: a request whose status comes at the same time is either found or waits for this lock.
        let mut waiting = self.waiting();
        // The calls whose requests have no session and may have no status yet.
        let undecided =
            |id: &RequestId| open.calls_where(|(scope, of)| matches!(scope, Scope::Exchange(_)) && of == id);
        let mut add = |id: &RequestId, message: &dyn Fn() -> CollectedMessage| {
            if open.contains(&(Scope::Unnamed, id.clone())) {
                return;
            }
            let calls = undecided(id);
            // No request waits for it: an answer to nothing must not end a later call with the same id.
            if calls.is_empty() {
                return;
            }
            // A server must not fill the memory with answers that nobody asked for.
            if waiting.len() == MAX_WAITING {
                waiting.pop_front();
            }
            waiting.push_back(EarlyResponse { calls, message: message() });
        };
        let answered = ServerMessage::read(message);
        match &answered {
            ServerMessage::Responses(responses) => {
                for response in responses {
                    add(&response.id, &|| CollectedMessage::Whole(response.text.into()));
                }
            }
            ServerMessage::Scanned { found, length } => {
                if let (Some(id), Some(_)) = (&found.id, &found.response) {
                    add(id, &|| CollectedMessage::Scanned { found: found.clone(), length: *length });
                }
            }
        }
        answered.end_calls(session, |id| open.take(&(Scope::Unnamed, id.clone())));
    }

    /// Moves calls whose requests were accepted to the streams without a session. Ends those whose responses have come already, and
    /// returns the others.
    pub(super) fn accept(
        &self,
        session: &Session,
        open: &OpenRequests,
        scope: &Scope,
        calls: Vec<(RequestId, CallId)>,
    ) -> Vec<(RequestId, CallId)> {
        let mut waiting = self.waiting();
        let mut moved = Vec::new();
        for (id, call) in calls {
            if !open.remove(&(scope.clone(), id.clone()), &call) {
                continue;
            }
            let place = waiting.iter().position(|early| early.calls.contains(&call));
            if let Some(early) = place.and_then(|place| waiting.remove(place)) {
                ServerMessage::read(&early.message).end_calls(session, |_| Some(call.clone()));
            } else {
                open.insert((Scope::Unnamed, id.clone()), call.clone());
                moved.push((id, call));
            }
        }
        moved
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<EarlyResponse>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use serde_json::json;

    use super::*;
    use crate::session::tests::session;
    use crate::session::{Admission, IncomingArgs, IncomingCall};

    #[test]
    fn calls_are_abandoned_when_no_stream_of_their_session_is_open() {
        let (session, sink) = session(None, &[]);
        let (open, detached) = (OpenRequests::default(), DetachedCalls::default());
        let (scope, id) = (Scope::Session("s".to_owned()), RequestId::parse(b"1").unwrap());
        let args = json!({});
        let args = IncomingArgs::Inspected { value: &args, text: Cow::Borrowed("{}") };
        let begun = session.begin(&IncomingCall { tool_name: "a", args, bytes_in: 1, retry: None });
        let Admission::Forward(call) = begun else { panic!("{begun:?}") };
        open.insert((scope.clone(), id.clone()), call.clone());
        detached.stream_starts(&scope);
        detached.add(&scope, vec![(id, call)], &open);
        detached.end_abandoned(Duration::ZERO, &session, &open);
        assert_eq!(sink.ends().len(), 0, "a stream is open");
        detached.stream_ends(&scope);
        detached.end_abandoned(Duration::from_hours(1), &session, &open);
        assert_eq!(sink.ends().len(), 0, "the client can still resume the stream");
        detached.end_abandoned(Duration::ZERO, &session, &open);
        assert_eq!((sink.ends().len(), sink.ends()[0].status), (1, CallStatus::Cancelled));
        assert!(open.is_empty() && detached.scopes().is_empty());
    }
}
