//! The body of a request, in memory or in a temporary file, and the headers that are passed on with it.

use std::future::poll_fn;
use std::io::{self, Write as _};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST, LOCATION,
    PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use counterproof_store::spill_buffer::SpillBuffer;
use hyper::body::Frame;
use tokio::time::timeout;

use super::UpstreamUrl;

const PIECE_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub(super) enum RequestBody {
    Small(Vec<u8>),
    Large(Arc<SpillBuffer>),
}

#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error("the client closed the connection within the request")]
    ClientGone,
    #[error("the client sent nothing for {0:?} within the request")]
    Silent(Duration),
    #[error("the request is too large to be held back for inspection: {0}")]
    Buffer(#[source] io::Error),
}

impl RequestBody {
    /// Reads a body to its end. `limit` is the largest size that is held in memory, and `silence` the longest time without a
    /// piece.
    pub(super) async fn read(mut body: Body, limit: usize, silence: Duration) -> Result<Self, ReadError> {
        // Grows with what arrives. The announced length is not reserved: it costs a client nothing.
        let mut small = Vec::new();
        while let Some(piece) = arriving_piece(&mut body, silence).await? {
            if small.len() + piece.len() <= limit {
                small.extend_from_slice(&piece);
                continue;
            }
            let mut large = SpillBuffer::default();
            large.write_all(&std::mem::take(&mut small)).map_err(ReadError::Buffer)?;
            large.write_all(&piece).map_err(ReadError::Buffer)?;
            while let Some(piece) = arriving_piece(&mut body, silence).await? {
                large.write_all(&piece).map_err(ReadError::Buffer)?;
            }
            return Ok(Self::Large(Arc::new(large)));
        }
        Ok(Self::Small(small))
    }

    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Small(bytes) => bytes.len() as u64,
            Self::Large(buffer) => buffer.len(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

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

async fn arriving_piece(body: &mut Body, silence: Duration) -> Result<Option<Bytes>, ReadError> {
    let piece = timeout(silence, next_piece(body)).await.map_err(|_| ReadError::Silent(silence))?;
    piece.transpose().map_err(|_| ReadError::ClientGone)
}

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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentType {
    Json,
    Events,
    Form,
    Other,
}

impl ContentType {
    pub(super) fn from_headers(headers: &HeaderMap) -> Self {
        match &*headers.get(CONTENT_TYPE).map(media_type).unwrap_or_default() {
            b"application/json" | b"application/json-rpc" | b"application/jsonrequest" => Self::Json,
            b"text/event-stream" => Self::Events,
            b"application/x-www-form-urlencoded" => Self::Form,
            _ => Self::Other,
        }
    }
}

/// Returns the type in lower case. Parameters, such as the charset, do not matter.
fn media_type(value: &HeaderValue) -> Vec<u8> {
    let media_type = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
    media_type.trim_ascii().to_ascii_lowercase()
}

/// True if the body has a type that browsers send to other sites without asking these for permission.
pub(super) fn can_come_from_a_form(headers: &HeaderMap) -> bool {
    // All of them: the server may use any value of a repeated header.
    headers.get_all(CONTENT_TYPE).iter().any(|value| {
        matches!(&*media_type(value), b"application/x-www-form-urlencoded" | b"multipart/form-data" | b"text/plain")
    })
}

pub(super) fn is_compressed(headers: &HeaderMap) -> bool {
    headers.get_all(CONTENT_ENCODING).iter().any(|encoding| encoding.as_bytes() != b"identity")
}

/// The headers of one connection (RFC 9110, section 7.6.1), in addition to those that `Connection` names.
pub const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Turns the headers of the client's request into those of the request to the server. `length` is the size of the body, or
/// none without one.
pub(super) fn to_server(headers: &mut HeaderMap, length: Option<u64>) {
    remove_hop_by_hop(headers);
    // The proxy itself answers `Expect`, and the HTTP client sets `Host` to the name of the server.
    headers.remove(EXPECT);
    headers.remove(HOST);
    headers.remove(CONTENT_LENGTH);
    if let Some(length) = length {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    // A compressed answer could not be inspected.
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
}

pub(super) fn to_client(headers: &mut HeaderMap, upstream: &UpstreamUrl) {
    remove_hop_by_hop(headers);
    // A redirect within the server must not lead the client past the proxy.
    if let Some(location) = headers.get(LOCATION).and_then(|value| upstream.relative(value.to_str().ok()?))
        && let Ok(location) = HeaderValue::try_from(location)
    {
        headers.insert(LOCATION, location);
    }
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    // `Connection` names further headers of the connection.
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in HOP_BY_HOP.iter().chain(&named) {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use hyper::body::SizeHint;

    use super::*;

    async fn round_trip(size: usize) -> (RequestBody, Vec<u8>) {
        let bytes: Vec<u8> = (0..=250).cycle().take(size).collect();
        let pieces: Vec<_> = bytes.chunks(1000).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        let body = Body::new(PieceBody::new(pieces.into_iter()));
        (RequestBody::read(body, 4096, Duration::MAX).await.unwrap(), bytes)
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

    /// A body that announces a length, sends one byte, and then ends or sends nothing.
    struct Announced {
        length: u64,
        has_sent: bool,
        ends: bool,
    }

    impl HttpBody for Announced {
        type Data = Bytes;
        type Error = io::Error;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
            match std::mem::replace(&mut self.has_sent, true) {
                false => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"x"))))),
                true if self.ends => Poll::Ready(None),
                true => Poll::Pending,
            }
        }

        fn size_hint(&self) -> SizeHint {
            SizeHint::with_exact(self.length)
        }
    }

    #[tokio::test]
    async fn memory_follows_what_arrives_and_not_the_announced_length() {
        let body = Body::new(Announced { length: 1 << 20, has_sent: false, ends: true });
        match RequestBody::read(body, 1 << 20, Duration::MAX).await.unwrap() {
            RequestBody::Small(bytes) => assert!(bytes.len() == 1 && bytes.capacity() < 1024, "{}", bytes.capacity()),
            RequestBody::Large(_) => panic!("one byte is held in memory"),
        }
    }

    #[tokio::test]
    async fn a_body_without_further_bytes_is_given_up() {
        let body = Body::new(Announced { length: 2, has_sent: false, ends: false });
        let error = RequestBody::read(body, 1 << 20, Duration::from_millis(1)).await.unwrap_err();
        assert!(matches!(error, ReadError::Silent(_)), "{error}");
    }

    #[test]
    fn types_that_a_form_of_a_web_page_can_send_are_detected() {
        for value in [
            "text/plain",
            "Text/Plain;charset=UTF-8",
            " multipart/form-data; boundary=x",
            "application/x-www-form-urlencoded",
            "text/plain; x=application/json",
        ] {
            assert!(can_come_from_a_form(&headers(&[("content-type", value)])), "{value}");
        }
        assert!(can_come_from_a_form(&headers(&[
            ("content-type", "application/json"),
            ("content-type", "text/plain")
        ])));
        for value in ["application/json", "application/json; x=text/plain", "text/event-stream", ""] {
            assert!(!can_come_from_a_form(&headers(&[("content-type", value)])), "{value}");
        }
        assert!(!can_come_from_a_form(&HeaderMap::new()));
    }

    #[test]
    fn parameters_and_case_of_a_type_do_not_matter() {
        for (value, expected) in [
            ("Application/JSON; charset=utf-8", ContentType::Json),
            ("text/event-stream ;x=y", ContentType::Events),
            ("application/x-www-form-urlencoded", ContentType::Form),
            ("application/json-seq", ContentType::Other),
            ("", ContentType::Other),
        ] {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(value))]);
            assert_eq!(ContentType::from_headers(&headers), expected, "{value}");
        }
        assert_eq!(ContentType::from_headers(&HeaderMap::new()), ContentType::Other);
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn headers_of_the_connection_are_removed_and_all_others_are_kept() {
        let mut found = headers(&[
            ("connection", "close, X-Hop"),
            ("x-hop", "1"),
            ("keep-alive", "timeout=5"),
            ("transfer-encoding", "chunked"),
            ("mcp-session-id", "abc"),
            ("set-cookie", "a=1"),
            ("set-cookie", "b=2"),
        ]);
        let upstream = "http://tools.example/mcp".parse().unwrap();
        to_client(&mut found, &upstream);
        assert_eq!(found, headers(&[("mcp-session-id", "abc"), ("set-cookie", "a=1"), ("set-cookie", "b=2")]));
    }

    #[test]
    fn a_request_gets_the_length_of_its_body_and_asks_for_an_answer_without_compression() {
        let mut found = headers(&[("host", "127.0.0.1:1"), ("content-length", "9"), ("accept-encoding", "gzip, br")]);
        to_server(&mut found, Some(7));
        assert_eq!(found, headers(&[("content-length", "7"), ("accept-encoding", "identity")]));
        to_server(&mut found, None);
        assert_eq!(found, headers(&[("accept-encoding", "identity")]));
    }
}
