//! Response bodies: read up to a limit and up to a time, then decoded up to the same limit. What they mean is not asked here.

use async_compression::tokio::bufread::{GzipDecoder, ZlibDecoder};
use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Instant, timeout_at};

use crate::fault::{Fault, Reason};

/// What was read of a body.
#[derive(Debug, Default)]
pub(crate) struct Body {
    /// The bytes, decoded where that was possible.
    pub(crate) bytes: Vec<u8>,
    /// How many bytes there would have been, where that is known.
    pub(crate) total: Option<u64>,
    /// Why there is less here than there was.
    pub(crate) cut: Option<Fault>,
    /// True where a secret of the runner's own was taken out.
    pub(crate) masked: bool,
    /// What a reader of the saved body should know.
    pub(crate) note: Option<&'static str>,
}

/// Reads the body of a response: never more than `limit` bytes, never past `deadline`.
pub(crate) async fn read(response: &mut Response, limit: usize, deadline: Instant) -> Body {
    let announced = header(response.headers(), CONTENT_LENGTH.as_str()).and_then(|length| length.parse().ok());
    let encoding = header(response.headers(), CONTENT_ENCODING.as_str()).unwrap_or_default().to_ascii_lowercase();
    let mut bytes = Vec::new();
    let cut = loop {
        match timeout_at(deadline, response.chunk()).await {
            Ok(Ok(Some(chunk))) => {
                let room = limit - bytes.len();
                bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
                if chunk.len() > room {
                    break Some(too_large(limit));
                }
            }
            Ok(Ok(None)) => break None,
            Ok(Err(error)) => break Some(Fault::of_body(&error)),
            Err(_elapsed) => break Some(Fault::new(Reason::BodyTimeout, "the body did not end in time")),
        }
    };
    let total = if cut.is_none() { Some(bytes.len() as u64) } else { announced };
    let body = Body { bytes, total, cut, ..Body::default() };
    // Half of a compressed body is kept as it came.
    if body.cut.is_some() { body } else { decode(body, &encoding, limit).await }
}

async fn decode(body: Body, encoding: &str, limit: usize) -> Body {
    let decoded = match encoding {
        "" | "identity" => return body,
        "gzip" | "x-gzip" => take(GzipDecoder::new(body.bytes.as_slice()), limit).await,
        "deflate" => take(ZlibDecoder::new(body.bytes.as_slice()), limit).await,
        _ => {
            let fault =
                Fault::new(Reason::UnknownEncoding, "the body is in an encoding that the runner did not ask for");
            return Body { cut: Some(fault), note: Some("saved as it came, still encoded"), ..body };
        }
    };
    match decoded {
        Ok(bytes) if bytes.len() > limit => Body {
            bytes: bytes[..limit].to_vec(),
            total: None,
            cut: Some(too_large(limit)),
            note: Some("saved after decoding"),
            ..Body::default()
        },
        Ok(bytes) => {
            Body { total: Some(bytes.len() as u64), bytes, note: Some("saved after decoding"), ..Body::default() }
        }
        Err(_) => {
            let fault = Fault::new(Reason::UndecodableBody, "the body is not in the encoding that it claims");
            Body { cut: Some(fault), note: Some("saved as it came, still encoded"), ..body }
        }
    }
}

/// Reads at most one byte more than `limit`, so that the caller can tell "full" from "too much".
async fn take(decoder: impl AsyncRead + Unpin, limit: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    decoder.take((limit as u64).saturating_add(1)).read_to_end(&mut bytes).await?;
    Ok(bytes)
}

fn too_large(limit: usize) -> Fault {
    Fault::new(Reason::BodyTooLarge, format!("the body is larger than the limit of {limit} bytes"))
}

/// A header as text.
pub(crate) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}
