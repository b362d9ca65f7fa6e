//! Bodies as sequences of pieces.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Bytes, HttpBody};
use hyper::body::Frame;

/// Returns the next piece of a body. Trailers are skipped.
pub(super) async fn next_piece<B>(body: &mut B) -> Option<Result<Bytes, B::Error>>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    loop {
        match poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await? {
            Ok(frame) => {
                if let Ok(data) = frame.into_data() {
                    return Some(Ok(data));
                }
            }
            Err(error) => return Some(Err(error)),
        }
    }
}

/// A body whose pieces are available at once.
#[derive(Debug)]
pub(super) struct PieceBody<I> {
    pieces: I,
}

impl<I> PieceBody<I> {
    pub(super) const fn new(pieces: I) -> Self {
        Self { pieces }
    }
}

impl<I: Iterator<Item = io::Result<Bytes>> + Unpin> HttpBody for PieceBody<I> {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        Poll::Ready(self.pieces.next().map(|piece| piece.map(Frame::data)))
    }
}
