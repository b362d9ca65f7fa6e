//! One request to the server and its response: records the ends of the calls that the response answers.

use std::sync::Arc;

use axum::http::header::CONTENT_LENGTH;
use axum::http::response::Parts;
use axum::http::{HeaderMap, StatusCode};
use counterproof_ledger::event::{CallError, CallId, CallStatus, ErrorClass};

use super::detached_calls::{DetachedCalls, EarlyResponses};
use super::messages::{CollectedMessage, EventStream, MessageBuffer, OpenRequests, Scope, ServerMessage};
use super::request_body::{ContentType, is_compressed};
use crate::mcp::RequestId;
use crate::session::{CallResult, Session};

#[derive(Clone)]
pub(super) struct Shared {
    pub(super) session: Arc<Session>,
    pub(super) open: Arc<OpenRequests>,
    pub(super) detached: Arc<DetachedCalls>,
    pub(super) early: Arc<EarlyResponses>,
}

pub(super) struct Exchange {
    shared: Shared,
    scope: Scope,
    calls: Vec<(RequestId, CallId)>,
    reader: Reader,
    status: StatusCode,
    /// Number of bytes that are still to come, if it is known. The body is not read beyond them.
    remaining: Option<u64>,
    is_over: bool,
    failure: Option<String>,
}

#[derive(Debug)]
enum Reader {
    Document(MessageBuffer),
    Events(Box<EventStream>),
    Opaque,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResponseEnd {
    Complete,
    Broken,
    ClientGone,
}

impl Exchange {
    pub(super) fn new(shared: Shared, scope: Scope, calls: Vec<(RequestId, CallId)>) -> Self {
        let (reader, status) = (Reader::Opaque, StatusCode::OK);
        Self { shared, scope, calls, reader, status, remaining: None, is_over: false, failure: None }
    }

    pub(super) fn start_response(&mut self, head: &Parts) {
        self.status = head.status;
        // 202 states that the response comes on another stream.
        if head.status == StatusCode::ACCEPTED {
            self.wait_elsewhere();
        }
        self.reader = Reader::new(&head.headers);
        if self.is_stream_of_others() {
            self.shared.detached.stream_starts(&self.scope);
        }
        // Responses with these statuses have no body, whatever their length states (RFC 9110).
        let has_body = !matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        let length = head.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        self.remaining = if has_body { length } else { Some(0) };
        if self.remaining == Some(0) {
            self.end(ResponseEnd::Complete);
        }
    }

    pub(super) fn fail(&mut self, problem: &str) {
        self.failure = Some(problem.to_owned());
        self.end(ResponseEnd::Broken);
    }

    /// A request that is only accepted is answered on another stream.
    fn wait_elsewhere(&mut self) {
        let calls = std::mem::take(&mut self.calls);
        let Shared { session, open, detached, early } = &self.shared;
        if !matches!(self.scope, Scope::Exchange(_)) {
            return detached.add(&self.scope, calls, open);
        }
        let moved = early.accept(session, open, &self.scope, calls);
        detached.add(&Scope::Unnamed, moved, open);
    }

    /// True if the response is a stream on which responses to other requests of the session can come.
    fn is_stream_of_others(&self) -> bool {
        matches!(self.reader, Reader::Events(_)) && !matches!(self.scope, Scope::Exchange(_))
    }

    /// Reads a piece of the body. The ends of calls are recorded before the piece is forwarded.
    pub(super) fn piece(&mut self, piece: &[u8]) {
        let Self { shared, scope, calls, reader, .. } = self;
        match reader {
            Reader::Opaque => {}
            Reader::Events(events) => events.push(piece, |message| shared.record(scope, &message)),
            // A document answers its own request only.
            Reader::Document(_) if calls.is_empty() => {}
            Reader::Document(buffer) => buffer.push(piece),
        }
        if let Some(remaining) = &mut self.remaining {
            *remaining = remaining.saturating_sub(piece.len() as u64);
            if *remaining == 0 {
                self.end(ResponseEnd::Complete);
            }
        }
    }

    /// True if the response is a stream of events on which no call of the request waits for its result.
    pub(super) fn is_idle_stream(&self) -> bool {
        let is_stream = matches!(self.reader, Reader::Events(_));
        is_stream
            && !self.calls.iter().any(|(id, call)| self.shared.open.is_waiting(&(self.scope.clone(), id.clone()), call))
    }

    /// Ends the response. Has no effect the second time.
    pub(super) fn end(&mut self, end: ResponseEnd) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        let shared = &self.shared;
        let Shared { session, open, detached, .. } = shared;
        // A document that broke off answers nothing: the client cannot read it either.
        if let Reader::Document(buffer) = &mut self.reader
            && !buffer.is_empty()
            && end == ResponseEnd::Complete
        {
            shared.record(&self.scope, &buffer.take());
        }
        if self.is_stream_of_others() {
            detached.stream_ends(&self.scope);
        }
        // The client can ask for the rest of such a stream.
        let is_resumable = matches!(&self.reader, Reader::Events(events) if events.has_ids);
        let calls = std::mem::take(&mut self.calls);
        // The call is not over yet: its response can come on the stream with which the client asks for the rest.
        if is_resumable && matches!(self.scope, Scope::Session(_)) {
            return detached.add(&self.scope, calls, open);
        }
        for (id, call) in calls {
            // Only what has not ended meanwhile, for example by a cancellation.
            if open.remove(&(self.scope.clone(), id), &call) {
                session.end(&call, self.unanswered(end));
            }
        }
    }

    fn unanswered(&self, end: ResponseEnd) -> CallResult<'static> {
        let failed = |class, message: String| CallResult::unanswered(CallStatus::Error, class, message);
        match end {
            ResponseEnd::ClientGone => CallResult::cancelled(),
            ResponseEnd::Broken => {
                let message = || "the connection to the server ended before the result".to_owned();
                failed(ErrorClass::Transport, self.failure.clone().unwrap_or_else(message))
            }
            ResponseEnd::Complete if self.status.is_success() => {
                failed(ErrorClass::Transport, "the response of the server has no result".to_owned())
            }
            ResponseEnd::Complete => {
                let message = format!("the server answered with the HTTP status {}", self.status);
                let code = Some(format!("HTTP {}", self.status.as_u16()));
                let error = CallError { class: ErrorClass::UpstreamError, message, code, retryable: None };
                CallResult { error: Some(error), ..failed(ErrorClass::UpstreamError, String::new()) }
            }
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.end(ResponseEnd::ClientGone);
    }
}

impl Reader {
    fn new(headers: &HeaderMap) -> Self {
        if is_compressed(headers) {
            return Self::Opaque;
        }
        match ContentType::from_headers(headers) {
            ContentType::Events => Self::Events(Box::default()),
            // The type may be wrong. A body that is not a message answers nothing.
            ContentType::Json | ContentType::Form | ContentType::Other => Self::Document(MessageBuffer::default()),
        }
    }
}

impl Shared {
    fn record(&self, scope: &Scope, message: &CollectedMessage) {
        let Self { session, open, early, .. } = self;
        if *scope == Scope::Unnamed {
            return early.record(session, open, message);
        }
        ServerMessage::read(message).end_calls(session, |id| open.take(&(scope.clone(), id.clone())));
    }
}

#[cfg(test)]
mod tests {
    use crate::http::messages::{OpenRequests, Scope};
    use std::borrow::Cow;

    use axum::http::Response;
    use axum::http::header::CONTENT_TYPE;
    use serde_json::json;

    use super::*;
    use crate::session::tests::session;
    use crate::session::{Admission, IncomingArgs, IncomingCall};

    fn head(status: StatusCode, content_type: &'static str) -> Parts {
        let mut head = Response::new(()).into_parts().0;
        head.status = status;
        head.headers.insert(CONTENT_TYPE, content_type.parse().unwrap());
        head
    }

    fn begin(session: &Session) -> CallId {
        let args = json!({});
        let args = IncomingArgs::Inspected { value: &args, text: Cow::Borrowed("{}") };
        match session.begin(&IncomingCall { tool_name: "a", args, bytes_in: 1, retry: None }) {
            Admission::Forward(call) => call,
            refused @ Admission::Refuse(_) => panic!("{refused:?}"),
        }
    }

    #[test]
    fn a_result_on_a_stream_before_the_status_of_its_request_ends_the_call() {
        let (session, sink) = session(None, &[]);
        let session = Arc::new(session);
        let (open, detached, early) = <(Arc<OpenRequests>, Arc<DetachedCalls>, Arc<EarlyResponses>)>::default();
        let shared = || Shared {
            session: session.clone(),
            open: open.clone(),
            detached: detached.clone(),
            early: early.clone(),
        };
        let mut stream = Exchange::new(shared(), Scope::Unnamed, Vec::new());
        stream.start_response(&head(StatusCode::OK, "text/event-stream"));
        let large = format!(r#"{{"id":2,"result":{{"text":"{}"}}}}"#, "x".repeat(2 << 20));
        for (number, response) in
            [(1, r#"{"id":1,"result":{}}"#), (2, &*large), (3, r#"[{"id":3,"error":{"code":1}}]"#)]
        {
            let call = begin(&session);
            let id = RequestId::from_value(&json!(number)).unwrap();
            let scope = Scope::Exchange(number);
            open.insert((scope.clone(), id.clone()), call.clone());
            let mut request = Exchange::new(shared(), scope, vec![(id, call)]);
            stream.piece(format!("data: {response}\n\n").as_bytes());
            assert_eq!(sink.ends().len() as u64, number - 1, "the status is not known");
            request.start_response(&head(StatusCode::ACCEPTED, "text/plain"));
            assert_eq!(sink.ends().len() as u64, number);
        }
        let statuses: Vec<_> = sink.ends().iter().map(|end| end.status).collect();
        assert_eq!(statuses, [CallStatus::Ok, CallStatus::Ok, CallStatus::Error]);
        assert!(open.is_empty());
    }

    #[test]
    fn an_early_result_never_ends_a_later_call() {
        let (session, sink) = session(None, &[]);
        let (open, early) = (OpenRequests::default(), EarlyResponses::default());
        let id = RequestId::from_value(&json!(1)).unwrap();
        let calls = [0, 1].map(|number| {
            let (scope, call) = (Scope::Exchange(number), begin(&session));
            open.insert((scope.clone(), id.clone()), call.clone());
            if number == 0 {
                early.record(&session, &open, &CollectedMessage::Whole(br#"{"id":1,"result":{}}"#.to_vec()));
                // The request was answered with a document.
                open.take(&(scope.clone(), id.clone()));
            }
            (scope, call)
        });
        let [_, (scope, call)] = calls;
        let moved = early.accept(&session, &open, &scope, vec![(id.clone(), call.clone())]);
        assert_eq!((moved, sink.ends().len()), (vec![(id, call)], 0));
    }
}
