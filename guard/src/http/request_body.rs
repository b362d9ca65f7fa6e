//! The body of a request: in memory up to the limit of the inspection, and in a temporary file beyond it.

use std::io::{self, Write as _};
use std::sync::Arc;

use axum::body::{Body, Bytes, HttpBody as _};
use counterproof_store::spill_buffer::SpillBuffer;

use super::http_body::{PieceBody, next_piece};

/// Size of the pieces in which a large body is sent.
const PIECE_BYTES: usize = 64 * 1024;

/// The whole body of a request.
#[derive(Debug)]
pub(super) enum RequestBody {
    /// It fits the limit of the inspection.
    Small(Vec<u8>),
    Large(Arc<SpillBuffer>),
}

/// Why a body was not read to its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    /// The client broke off.
    #[error("the client closed the connection within the request")]
    ClientGone,
    /// There is no room for the body, neither in memory nor on disk.
    #[error("the request is too large to be held back for inspection: {0}")]
    Buffer(#[source] io::Error),
}

impl RequestBody {
    /// Reads a body to its end. `limit` is the largest size that is held in memory.
    pub(super) async fn read(mut body: Body, limit: usize) -> Result<Self, ReadError> {
        let expected = body.size_hint().exact().and_then(|size| usize::try_from(size).ok()).unwrap_or_default();
        let mut small = Vec::with_capacity(expected.min(limit));
        while let Some(piece) = next_piece(&mut body).await {
            let piece = piece.map_err(|_| ReadError::ClientGone)?;
            if small.len() + piece.len() <= limit {
                small.extend_from_slice(&piece);
                continue;
            }
            let mut large = SpillBuffer::default();
            large.write_all(&std::mem::take(&mut small)).map_err(ReadError::Buffer)?;
            large.write_all(&piece).map_err(ReadError::Buffer)?;
            while let Some(piece) = next_piece(&mut body).await {
                let piece = piece.map_err(|_| ReadError::ClientGone)?;
                large.write_all(&piece).map_err(ReadError::Buffer)?;
            }
            return Ok(Self::Large(Arc::new(large)));
        }
        Ok(Self::Small(small))
    }

    /// Size in bytes.
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Small(bytes) => bytes.len() as u64,
            Self::Large(buffer) => buffer.len(),
        }
    }

    /// True without a byte.
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `read` with each piece.
    pub(super) fn read_pieces(&self, mut read: impl FnMut(&[u8])) -> io::Result<()> {
        let buffer = match self {
            Self::Small(bytes) => {
                read(bytes);
                return Ok(());
            }
            Self::Large(buffer) => buffer,
        };
        let (mut offset, mut piece) = (0, vec![0; PIECE_BYTES]);
        loop {
            let length = buffer.read_at(offset, &mut piece)?;
            if length == 0 {
                return Ok(());
            }
            read(&piece[..length]);
            offset += length as u64;
        }
    }

    /// Turns it into the body of another request.
    pub(super) fn into_body(self) -> reqwest::Body {
        match self {
            Self::Small(bytes) => bytes.into(),
            Self::Large(buffer) => {
                let mut offset = 0;
                let pieces = std::iter::from_fn(move || {
                    let mut piece = vec![0; PIECE_BYTES];
                    match buffer.read_at(offset, &mut piece) {
                        Ok(0) => None,
                        Ok(read) => {
                            offset += read as u64;
                            piece.truncate(read);
                            Some(Ok(Bytes::from(piece)))
                        }
                        Err(error) => Some(Err(error)),
                    }
                });
                reqwest::Body::wrap(PieceBody::new(pieces))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn round_trip(size: usize) -> (RequestBody, Vec<u8>) {
        let bytes: Vec<u8> = (0..=250).cycle().take(size).collect();
        let pieces: Vec<_> = bytes.chunks(1000).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        let body = Body::new(PieceBody::new(pieces.into_iter()));
        (RequestBody::read(body, 4096).await.unwrap(), bytes)
    }

    #[tokio::test]
    async fn a_body_is_the_same_in_memory_and_in_a_file() {
        for size in [0, 1, 4096, 4097, 700_000] {
            let (body, bytes) = round_trip(size).await;
            assert_eq!(body.len(), size as u64);
            assert_eq!(matches!(body, RequestBody::Large(_)), size > 4096);
            let mut sent = Body::new(body.into_body());
            let mut received = Vec::new();
            while let Some(piece) = next_piece(&mut sent).await {
                received.extend_from_slice(&piece.unwrap());
            }
            assert!(received == bytes);
        }
    }
}
