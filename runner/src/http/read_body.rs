//! Response bodies: read within time and size limits, decoded and stored while they arrive. The recorder judges the content.

use std::time::Duration;

use counterproof_store::write::WriteError;
use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, CONTENT_LENGTH, HeaderName};
use tokio::time::{Instant, timeout_at};

use super::connect_error::body_fault;
use super::decode::{self, Decoder, Undecodable};
use crate::failure::{Fault, Reason};
use crate::received::{BodyDestination, BodySink, Extent, ReceivedBody, SinkFull, SinkLimits};

/// The limits and the destination of a body.
pub(super) struct BodyReader<'run> {
    pub(super) destination: BodyDestination<'run>,
    pub(super) limits: SinkLimits,
    /// When the attempt's time limit expires.
    pub(super) deadline: Instant,
    /// The longest pause between two pieces.
    pub(super) idle: Duration,
}

/// A body after the last piece, before it is summarised.
struct Drained<'run> {
    sink: BodySink<'run>,
    /// The fault that ended the transfer.
    interrupted: Option<Fault>,
    decoding: Decoding,
}

/// How the content encoding worked out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Decoding {
    Decoded,
    /// The encoding is unknown; the bytes were stored as received.
    Unknown,
    /// Decoding failed after the first decoded bytes; only those were stored.
    FailedMidway,
    /// Nothing could be decoded; the bytes were stored as received.
    StoredRaw,
}

impl<'run> BodyReader<'run> {
    /// Reads the body of a response. Errors come from the disk; everything that the agent does wrong becomes the body's
    /// `fault`.
    pub(super) async fn read(&self, response: &mut Response) -> Result<ReceivedBody, WriteError> {
        let announced = header(response, &CONTENT_LENGTH).and_then(|length| length.parse().ok());
        let encoding = header(response, &CONTENT_ENCODING).unwrap_or_default().trim().to_ascii_lowercase();
        let first = match self.next_piece(response).await {
            Ok(Some(first)) => first,
            Ok(None) => return Ok(ReceivedBody { total: Some(0), ..ReceivedBody::default() }),
            Err(fault) => {
                let extent = Extent::Truncated;
                return Ok(ReceivedBody { total: announced, fault: Some(fault), extent, ..ReceivedBody::default() });
            }
        };
        let drained = self.drain(response, first, &encoding).await;
        let mut body = self.summarise(drained, &encoding)?;
        // For an encoded body, `Content-Length` counts encoded bytes and says nothing about the decoded size.
        if body.extent == Extent::Truncated && encoding.is_empty() {
            body.total = announced;
        }
        Ok(body)
    }

    /// Decodes and stores all pieces.
    async fn drain(&self, response: &mut Response, first: Vec<u8>, encoding: &str) -> Drained<'run> {
        let mut sink = BodySink::new(self.destination, self.limits);
        let mut interrupted = None;
        let mut undecodable;
        {
            let mut decoder = Decoder::new(encoding, first.first().copied().unwrap_or_default(), &mut sink);
            let mut piece = first;
            loop {
                undecodable = decoder.push(&piece).err();
                if undecodable.is_some() || decoder.is_full() {
                    break;
                }
                match self.next_piece(response).await {
                    Ok(Some(next)) => piece = next,
                    Ok(None) => break undecodable = decoder.finish().err(),
                    Err(fault) => {
                        // An interrupted body is always incomplete in its encoding. That is a fault of its own only if
                        // nothing could be decoded.
                        undecodable = decoder.finish().err().filter(|undecodable| undecodable.raw.is_some());
                        break interrupted = Some(fault);
                    }
                }
            }
        }
        match undecodable {
            Some(Undecodable { raw: Some(raw) }) => {
                // Usually plain text with a wrong `Content-Encoding`, which is worth storing completely.
                let (sink, interrupted) = self.store_raw(response, raw, interrupted).await;
                Drained { sink, interrupted, decoding: Decoding::StoredRaw }
            }
            Some(Undecodable { raw: None }) => Drained { sink, interrupted, decoding: Decoding::FailedMidway },
            None if decode::is_known(encoding) => Drained { sink, interrupted, decoding: Decoding::Decoded },
            None => Drained { sink, interrupted, decoding: Decoding::Unknown },
        }
    }

    /// Reads the rest of a body that could not be decoded, and stores all of it as received.
    async fn store_raw(
        &self,
        response: &mut Response,
        raw: Vec<u8>,
        interrupted: Option<Fault>,
    ) -> (BodySink<'run>, Option<Fault>) {
        let mut sink = BodySink::new(self.destination, self.limits);
        let mut interrupted = interrupted;
        {
            let mut pass_through = Decoder::new("", 0, &mut sink);
            let mut piece = raw;
            // `raw` is stored even after an interruption: it is the only evidence of the body.
            while pass_through.push(&piece).is_ok() && !pass_through.is_full() && interrupted.is_none() {
                match self.next_piece(response).await {
                    Ok(Some(next)) => piece = next,
                    Ok(None) => break,
                    Err(fault) => interrupted = Some(fault),
                }
            }
        }
        (sink, interrupted)
    }

    fn summarise(&self, drained: Drained<'run>, encoding: &str) -> Result<ReceivedBody, WriteError> {
        let Drained { sink, interrupted, decoding } = drained;
        let accepted = sink.accepted() as u64;
        let is_truncated = interrupted.is_some() || sink.is_full() || decoding == Decoding::FailedMidway;
        let extent = if is_truncated { Extent::Truncated } else { Extent::Complete };
        let (bytes, full) = sink.finish(extent)?;
        let is_undecodable = matches!(decoding, Decoding::FailedMidway | Decoding::StoredRaw);
        let fault = match full {
            Some(full) if !is_undecodable => Some(size_fault(&full, self.limits.total)),
            // An interruption explains more than an encoding that is incomplete because of it.
            _ if interrupted.is_some() => interrupted,
            _ if is_undecodable => {
                Some(Fault::new(Reason::UndecodableBody, "the body is not valid in its declared encoding"))
            }
            _ if decoding == Decoding::Unknown => {
                Some(Fault::new(Reason::UnknownEncoding, "the runner did not request the encoding of the body"))
            }
            _ => None,
        };
        let note = match encoding {
            "" | "identity" => None,
            _ => Some(decoding.note(encoding)),
        };
        Ok(ReceivedBody { bytes, total: (!is_truncated).then_some(accepted), fault, extent, note })
    }

    /// Returns the next piece of a body, or `None` at its end.
    async fn next_piece(&self, response: &mut Response) -> Result<Option<Vec<u8>>, Fault> {
        // Starts with every piece: the pause is limited, the whole body only by `deadline`.
        let idle_deadline = Instant::now() + self.idle;
        match timeout_at(self.deadline.min(idle_deadline), response.chunk()).await {
            Ok(Ok(piece)) => Ok(piece.map(Into::into)),
            Ok(Err(error)) => Err(body_fault(&error)),
            Err(_) if idle_deadline < self.deadline => {
                Err(Fault::new(Reason::IdleTimeout, "the body paused for longer than the idle time-out"))
            }
            Err(_) => Err(Fault::new(Reason::BodyTimeout, "the body was not complete in time")),
        }
    }
}

impl Decoding {
    /// Returns the remark about an encoded body for readers of the saved file.
    fn note(self, encoding: &str) -> &'static str {
        match self {
            Decoding::StoredRaw => "saved as received, still encoded",
            _ if !decode::is_known(encoding) => "saved as received, still encoded; secrets in it could not be masked",
            _ => "saved after decoding",
        }
    }
}

fn size_fault(full: &SinkFull, limit: usize) -> Fault {
    match full {
        SinkFull::Ratio => {
            Fault::new(Reason::DecompressionBomb, "the body expands more than a hundredfold while it is decoded")
        }
        // A disk error ends the run in `BodySink::finish`, so it does not occur here.
        SinkFull::Limit | SinkFull::Disk(_) => {
            Fault::new(Reason::BodyTooLarge, format!("the body is larger than the limit of {limit} bytes"))
        }
    }
}

fn header<'a>(response: &'a Response, name: &HeaderName) -> Option<&'a str> {
    response.headers().get(name).and_then(|value| value.to_str().ok())
}
