//! The body of a request: read to its end before it leaves, because it may have results that are recorded first.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Bytes, HttpBody};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_ENCODING;
use hyper::body::{Frame, Incoming};

/// A larger request is passed on as it comes, and its content is not recorded.
pub const MAX_RECORDED_REQUEST: usize = 64 << 20;

pub(super) enum RequestBody {
    Whole(Bytes),
    /// The pieces up to the limit, and the rest as it comes.
    Large(Vec<Bytes>, Incoming),
}

impl RequestBody {
    /// Reads a body. The error means that the client has gone.
    pub(super) async fn read(mut body: Incoming, limit: usize) -> Result<Self, hyper::Error> {
        let (mut pieces, mut length) = (Vec::new(), 0);
        while let Some(piece) = next_piece(&mut body).await {
            let piece = piece?;
            length += piece.len();
            pieces.push(piece);
            if length > limit {
                return Ok(Self::Large(pieces, body));
            }
        }
        // One piece is the rule, and needs no copy.
        Ok(Self::Whole(match pieces.len() {
            0 | 1 => pieces.pop().unwrap_or_default(),
            _ => pieces.concat().into(),
        }))
    }

    pub(super) const fn whole(&self) -> Option<&Bytes> {
        match self {
            Self::Whole(bytes) => Some(bytes),
            Self::Large(..) => None,
        }
    }

    pub(super) fn into_body(self) -> reqwest::Body {
        match self {
            Self::Whole(bytes) => bytes.into(),
            Self::Large(pieces, rest) => reqwest::Body::wrap(Continued { pieces: pieces.into_iter(), rest }),
        }
    }
}

/// True if the body is not the JSON text itself.
pub(super) fn is_encoded(headers: &HeaderMap) -> bool {
    headers.get_all(CONTENT_ENCODING).iter().any(|coding| coding.as_bytes() != b"identity")
}

/// A body whose first pieces were read already.
struct Continued {
    pieces: std::vec::IntoIter<Bytes>,
    rest: Incoming,
}

impl HttpBody for Continued {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self.pieces.next() {
            Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece)))),
            None => Pin::new(&mut self.rest).poll_frame(context),
        }
    }
}

/// Returns the next frame of a body.
pub(super) async fn next_frame<B>(body: &mut B) -> Option<Result<Frame<Bytes>, B::Error>>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await
}

/// Returns the next piece of a body. Trailers are skipped.
async fn next_piece<B>(body: &mut B) -> Option<Result<Bytes, B::Error>>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    loop {
        match next_frame(body).await?.map(Frame::into_data) {
            Ok(Ok(piece)) => return Some(Ok(piece)),
            Ok(Err(_trailers)) => {}
            Err(error) => return Some(Err(error)),
        }
    }
}
