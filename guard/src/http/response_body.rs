//! The body of a response: the bytes of the server as they come, and before them or among them the answers to refused calls.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Bytes, HttpBody};
use hyper::body::Frame;

use super::exchange::{Exchange, ResponseEnd};

pub(super) type Stopping = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What is added to a JSON document, so that it is the response to a whole batch.
#[derive(Debug)]
enum Batch {
    Unchanged,
    /// These answers to refused calls come first. The document has not started.
    Starts(String),
    /// The array of the server has started after the answers, and has no element yet.
    Empty,
    /// The document is one message. The array around it is open.
    Single,
}

pub(super) struct ResponseBody {
    inner: reqwest::Body,
    exchange: Exchange,
    batch: Batch,
    waiting: VecDeque<Bytes>,
    stopping: Option<Stopping>,
    is_over: bool,
}

impl ResponseBody {
    pub(super) fn new(inner: reqwest::Body, exchange: Exchange, stopping: Stopping) -> Self {
        let waiting = VecDeque::new();
        Self { inner, exchange, batch: Batch::Unchanged, waiting, stopping: Some(stopping), is_over: false }
    }

    pub(super) fn with_events(mut self, answers: &[String]) -> Self {
        let events = answers.iter().map(|answer| format!("event: message\ndata: {answer}\n\n").into());
        self.waiting.extend(events);
        self
    }

    /// Adds answers as the first elements of the array of the server. A server that answers with one message instead, such as an
    /// error, gets an array around it.
    pub(super) fn with_elements(mut self, answers: &[String]) -> Self {
        self.batch = Batch::Starts(answers.join(","));
        self
    }

    fn insert(&mut self, piece: Bytes) -> Bytes {
        // The body passes in pieces: only its first bytes show whether the server answers with an array.
        let mut out = Vec::new();
        let mut rest = &*piece;
        while let Some(start) = rest.iter().position(|byte| !byte.is_ascii_whitespace()) {
            match std::mem::replace(&mut self.batch, Batch::Unchanged) {
                Batch::Starts(answers) if rest[start] == b'[' => {
                    out.extend_from_slice(&rest[..=start]);
                    out.extend_from_slice(answers.as_bytes());
                    rest = &rest[start + 1..];
                    self.batch = Batch::Empty;
                }
                Batch::Starts(answers) => {
                    out.extend_from_slice(format!("[{answers},").as_bytes());
                    self.batch = Batch::Single;
                    break;
                }
                Batch::Empty => {
                    out.extend_from_slice(if rest[start] == b']' { b"" } else { b"," });
                    break;
                }
                unchanged @ (Batch::Unchanged | Batch::Single) => {
                    self.batch = unchanged;
                    break;
                }
            }
        }
        if out.is_empty() {
            return piece;
        }
        out.extend_from_slice(rest);
        out.into()
    }

    fn end(&mut self) -> Option<Bytes> {
        match std::mem::replace(&mut self.batch, Batch::Unchanged) {
            Batch::Unchanged | Batch::Empty => None,
            Batch::Starts(answers) => Some(format!("[{answers}]").into()),
            Batch::Single => Some(Bytes::from_static(b"]")),
        }
    }
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = reqwest::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, reqwest::Error>>> {
        let this = &mut *self;
        if let Some(piece) = this.waiting.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        if this.is_over {
            return Poll::Ready(None);
        }
        match Pin::new(&mut this.inner).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => Poll::Ready(Some(Ok(match frame.into_data() {
                Ok(piece) => {
                    // First recorded, then forwarded: the client must not know more than the ledger.
                    this.exchange.piece(&piece);
                    Frame::data(this.insert(piece))
                }
                Err(trailers) => trailers,
            }))),
            Poll::Ready(Some(Err(error))) => {
                this.is_over = true;
                this.exchange.end(ResponseEnd::Broken);
                Poll::Ready(Some(Err(error)))
            }
            Poll::Ready(None) => {
                this.is_over = true;
                this.exchange.end(ResponseEnd::Complete);
                Poll::Ready(this.end().map(|piece| Ok(Frame::data(piece))))
            }
            Poll::Pending => {
                let is_stopping = this.stopping.as_mut().is_none_or(|it| it.as_mut().poll(context).is_ready());
                if !is_stopping {
                    return Poll::Pending;
                }
                this.stopping = None;
                // A stream on which no call waits could last forever. A document must not end here: it would look complete.
                if !this.exchange.is_idle_stream() {
                    return Poll::Pending;
                }
                this.is_over = true;
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        // Not what the server's body says: its end must be seen, and recorded.
        self.waiting.is_empty() && self.is_over
    }
}

#[cfg(test)]
mod tests {
    use crate::http::messages::{CollectedMessage, EventStream};
    use std::sync::Arc;
    use std::task::Waker;

    use axum::http::header::CONTENT_TYPE;
    use axum::http::{HeaderValue, Response};
    use proptest::prelude::*;

    use super::super::exchange::Shared;
    use super::*;
    use crate::http::messages::Scope;
    use crate::session::tests::session;

    /// The start of a body whose rest never comes.
    struct Start(Option<Bytes>);

    impl HttpBody for Start {
        type Data = Bytes;
        type Error = std::io::Error;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<std::io::Result<Frame<Bytes>>>> {
            self.0.take().map_or(Poll::Pending, |piece| Poll::Ready(Some(Ok(Frame::data(piece)))))
        }
    }

    /// Returns true if a response of this type ends when the proxy stops.
    fn ends_on_stop(content_type: &'static str) -> bool {
        let (session, _) = session(None, &[]);
        let shared = Shared {
            session: Arc::new(session),
            open: Arc::default(),
            detached: Arc::default(),
            early: Arc::default(),
        };
        let mut exchange = Exchange::new(shared, Scope::Exchange(0), Vec::new());
        let mut head = Response::new(()).into_parts().0;
        head.headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        exchange.start_response(&head);
        let inner = reqwest::Body::wrap(Start(Some(Bytes::from_static(b"{\"a\":"))));
        let mut body = ResponseBody::new(inner, exchange, Box::pin(std::future::ready(())));
        let mut context = Context::from_waker(Waker::noop());
        let first = Pin::new(&mut body).poll_frame(&mut context);
        assert!(matches!(first, Poll::Ready(Some(Ok(_)))));
        match Pin::new(&mut body).poll_frame(&mut context) {
            Poll::Pending => false,
            Poll::Ready(end) => end.is_none(),
        }
    }

    #[test]
    fn a_stream_ends_when_the_proxy_stops_and_a_document_does_not() {
        assert!(ends_on_stop("text/event-stream"));
        assert!(!ends_on_stop("application/json"));
        assert!(!ends_on_stop("text/plain"));
    }

    fn events(pieces: &[&[u8]]) -> (Vec<String>, bool) {
        let mut stream = EventStream::default();
        let mut found = Vec::new();
        for piece in pieces {
            stream.push(piece, |message| match message {
                CollectedMessage::Whole(bytes) => found.push(String::from_utf8(bytes).unwrap()),
                CollectedMessage::Scanned { length, .. } => found.push(format!("{length} bytes")),
            });
        }
        (found, stream.has_ids)
    }

    #[test]
    fn the_data_of_events_is_read_with_all_line_ends() {
        for end in ["\n", "\r\n", "\r"] {
            let text =
                ["event: message", "data: {\"a\":", "data:1}", "", ": comment", "", "data", "", "datax: 1", "", ""]
                    .join(end);
            assert_eq!(events(&[text.as_bytes()]), (vec!["{\"a\":\n1}".to_owned(), String::new()], false), "{end:?}");
        }
    }

    #[test]
    fn an_event_id_makes_a_stream_resumable() {
        assert_eq!(events(&[b"id: 7\ndata: x\n\n"]), (vec!["x".to_owned()], true));
        assert_eq!(events(&[b"data: x\n"]), (Vec::new(), false));
    }

    #[test]
    fn data_beyond_the_limit_is_scanned_and_not_held() {
        let long = format!("data: {{\"id\":1,\"result\":\"{}\"}}\n\n", "x".repeat(3 << 20));
        let pieces: Vec<&[u8]> = long.as_bytes().chunks(1 << 16).collect();
        assert_eq!(events(&pieces).0, [format!("{} bytes", long.len() - "data: \n\n".len())]);
    }

    proptest! {
        #[test]
        fn events_do_not_depend_on_the_pieces(
            lines in prop::collection::vec(prop::sample::select(vec!["data: a", "data:b", "data", "id:1", "", "", ":c", "x"]), 0..20),
            ends in prop::collection::vec(prop::sample::select(vec!["\n", "\r\n", "\r"]), 20),
            size in 1_usize..9,
        ) {
            let text = lines.iter().zip(ends).map(|(line, end)| format!("{line}{end}")).collect::<Vec<_>>().concat();
            // CR before LF is one line end in both readings.
            let pieces: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
            prop_assert_eq!(events(&pieces), events(&[text.as_bytes()]));
        }
    }
}
