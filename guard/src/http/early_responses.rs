//! Responses that come on a stream before the server has accepted their requests.
//!
//! Without a session, only the status 202 of a request states that its response comes on a stream. The response may be faster.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use counterproof_ledger::event::CallId;

use super::answered::Answered;
use super::message_buffer::CollectedMessage;
use super::open_requests::{OpenRequests, Scope};
use crate::mcp::{RequestId, ScannedMessage, end_calls, end_scanned_call, read_responses};
use crate::session::Session;

/// Most responses that wait for the status of their requests. Beyond it, the oldest are dropped.
const MAX_WAITING: usize = 16;

/// The responses that have come too early.
#[derive(Debug, Default)]
pub(super) struct EarlyResponses(Mutex<VecDeque<EarlyResponse>>);

#[derive(Debug)]
struct EarlyResponse {
    /// The calls that it may answer: clients can use the same id at the same time.
    calls: Vec<CallId>,
    message: EarlyMessage,
}

#[derive(Debug)]
enum EarlyMessage {
    /// The text of the response.
    Whole(String),
    /// What was found in a response that cannot be read as a whole.
    Scanned { found: Box<ScannedMessage>, length: u64 },
}

impl EarlyResponses {
    /// Records the ends of the calls that a message on a stream without a session answers.
    pub(super) fn record(&self, session: &Session, open: &OpenRequests, message: &CollectedMessage) {
        // Locked before the search: a request whose status comes at the same time is either found or waits for this lock.
        let mut waiting = self.waiting();
        // The calls whose requests have no session and may have no status yet.
        let undecided =
            |id: &RequestId| open.calls_where(|(scope, of)| matches!(scope, Scope::Exchange(_)) && of == id);
        let mut add = |id: &RequestId, message: &dyn Fn() -> EarlyMessage| {
            if open.contains(&(Scope::Unnamed, id.clone())) {
                return;
            }
            let calls = undecided(id);
            if calls.is_empty() {
                return;
            }
            if waiting.len() == MAX_WAITING {
                waiting.pop_front();
            }
            waiting.push_back(EarlyResponse { calls, message: message() });
        };
        let answered = Answered::read(message);
        match &answered {
            Answered::Responses(responses) => {
                for response in responses {
                    add(&response.id, &|| EarlyMessage::Whole(response.text.to_owned()));
                }
            }
            Answered::Scanned { found, length } => {
                if let (Some(id), Some(_)) = (&found.id, &found.response) {
                    add(id, &|| EarlyMessage::Scanned { found: found.clone(), length: *length });
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
                early.message.end(session, &call);
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

impl EarlyMessage {
    fn end(self, session: &Session, call: &CallId) {
        let take = |_: &RequestId| Some(call.clone());
        match self {
            Self::Whole(text) => end_calls(session, &read_responses(&text), take),
            Self::Scanned { found, length } => end_scanned_call(session, &found, length, take),
        }
    }
}
