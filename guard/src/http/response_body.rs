//! The body of a response: the bytes of the server as they come, and before them or among them the answers to refused calls.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Bytes, HttpBody};
use hyper::body::Frame;

use super::exchange::{Exchange, ResponseEnd};

/// A future that ends when the proxy stops.
pub(super) type Stopping = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The body of a response.
pub(super) struct ResponseBody {
    inner: reqwest::Body,
    exchange: Exchange,
    /// Answers that are added to the array of a batch.
    array_answers: Option<String>,
    waiting: VecDeque<Bytes>,
    stopping: Option<Stopping>,
    is_over: bool,
}

impl ResponseBody {
    /// Creates the body of a response that is forwarded as it is.
    pub(super) fn new(inner: reqwest::Body, exchange: Exchange, stopping: Stopping) -> Self {
        let waiting = VecDeque::new();
        Self { inner, exchange, array_answers: None, waiting, stopping: Some(stopping), is_over: false }
    }

    /// Adds answers as events before those of the server.
    pub(super) fn with_events(mut self, answers: &[String]) -> Self {
        let events = answers.iter().map(|answer| format!("event: message\ndata: {answer}\n\n").into());
        self.waiting.extend(events);
        self
    }

    /// Adds answers as the first elements of the array of the server. Another document is not changed.
    pub(super) fn with_elements(mut self, answers: &[String]) -> Self {
        self.array_answers = Some(answers.join(","));
        self
    }

    /// Inserts the answers after the bracket that starts the array.
    fn insert_elements(&mut self, piece: Bytes) -> Bytes {
        let Some(start) = piece.iter().position(|byte| !byte.is_ascii_whitespace()) else { return piece };
        let Some(answers) = self.array_answers.take() else { return piece };
        if piece[start] != b'[' {
            return piece;
        }
        let rest = &piece[start + 1..];
        // An empty array in a later piece would leave a comma: servers write a batch as a whole.
        let is_empty = rest.trim_ascii_start().first() == Some(&b']');
        let comma = if is_empty { "" } else { "," };
        [&piece[..=start], answers.as_bytes(), comma.as_bytes(), rest].concat().into()
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
                    this.exchange.piece(&piece);
                    let is_array = this.array_answers.is_some();
                    Frame::data(if is_array { this.insert_elements(piece) } else { piece })
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
                Poll::Ready(None)
            }
            Poll::Pending => {
                let is_stopping = this.stopping.as_mut().is_none_or(|it| it.as_mut().poll(context).is_ready());
                if !is_stopping {
                    return Poll::Pending;
                }
                this.stopping = None;
                // A stream on which no call waits could last forever.
                if !this.exchange.is_idle() {
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
