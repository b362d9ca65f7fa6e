//! The body of an answer on its way to the client.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Bytes, HttpBody};
use hyper::body::Frame;
use tokio::sync::mpsc;

/// The answer broke off. The connection to the client is closed within the body, so that the client sees it too.
#[derive(Debug, thiserror::Error)]
#[error("the answer broke off")]
pub(super) struct BrokenAnswer;

pub(super) type Piece = Result<Frame<Bytes>, BrokenAnswer>;

pub(super) struct AnswerBody {
    pieces: mpsc::Receiver<Piece>,
    broken: Option<BrokenAnswer>,
}

impl AnswerBody {
    pub(super) const fn new(pieces: mpsc::Receiver<Piece>) -> Self {
        Self { pieces, broken: None }
    }
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = BrokenAnswer;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Piece>> {
        if let Some(broken) = self.broken.take() {
            return Poll::Ready(Some(Err(broken)));
        }
        match self.pieces.poll_recv(context) {
            Poll::Ready(Some(Err(broken))) => {
                // The connection is dropped at once. It writes what it holds only if the body is pending.
                self.broken = Some(broken);
                context.waker().wake_by_ref();
                Poll::Pending
            }
            piece => piece,
        }
    }
}
