//! Response bodies: read within time and size limits, decoded and stored while they arrive. The recorder judges the content.

use std::io::{self, Write};
use std::time::Duration;

use counterproof_store::write::WriteError;
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, CONTENT_LENGTH, HeaderName};
use tokio::time::{Instant, timeout_at};

use super::connect_error::body_fault;
use crate::body_sink::{BodyDestination, BodySink, Extent, SinkFull, SinkLimits};
use crate::exchange::ReceivedBody;
use crate::failure::{Fault, Reason};

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
        // For an encoded body, `Content-Length` counts encoded bytes, not decoded ones.
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
                        // An interrupted body is always incomplete in its encoding. That is a separate fault only if
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
            None if is_known(encoding) => Drained { sink, interrupted, decoding: Decoding::Decoded },
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
            // A new sink, because the failed decoder may have stored a part of the body in the first.
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
            _ if !is_known(encoding) => "saved as received, still encoded; secrets in it could not be masked",
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

/// The number of encoded bytes to retain until the first decoded byte.
const MAX_RAW_START: usize = 64 * 1024;

/// A decoder that writes to a sink.
pub(crate) struct Decoder<'sink, 'run> {
    layer: Layer<'sink, 'run>,
    /// The first encoded bytes: the only evidence if nothing can be decoded.
    raw: Vec<u8>,
}

enum Layer<'sink, 'run> {
    Plain(&'sink mut BodySink<'run>),
    Gzip(Box<MultiGzDecoder<&'sink mut BodySink<'run>>>),
    Zlib(Box<ZlibDecoder<&'sink mut BodySink<'run>>>),
    Deflate(Box<DeflateDecoder<&'sink mut BodySink<'run>>>),
}

/// The body is not valid in its declared encoding.
#[derive(Debug)]
pub(crate) struct Undecodable {
    /// The first encoded bytes, if nothing could be decoded.
    pub(crate) raw: Option<Vec<u8>>,
}

/// Reports whether the runner can decode the encoding.
pub(crate) fn is_known(encoding: &str) -> bool {
    matches!(encoding, "" | "identity" | "gzip" | "x-gzip" | "deflate")
}

impl<'sink, 'run> Decoder<'sink, 'run> {
    /// Creates a decoder for a `Content-Encoding` and a body that starts with the byte `first`. Bytes in an unknown encoding
    /// are passed through.
    pub(crate) fn new(encoding: &str, first: u8, sink: &'sink mut BodySink<'run>) -> Self {
        if matches!(encoding, "gzip" | "x-gzip" | "deflate") {
            sink.encoded = Some(0);
        }
        let layer = match encoding {
            "gzip" | "x-gzip" => Layer::Gzip(Box::new(MultiGzDecoder::new(sink))),
            // The standard requires the zlib format, whose first byte names the method (RFC 1950, section 2.2). Many servers
            // send raw deflate, whose first block never starts with that value in practice.
            "deflate" if first & 0x0f == 8 => Layer::Zlib(Box::new(ZlibDecoder::new(sink))),
            "deflate" => Layer::Deflate(Box::new(DeflateDecoder::new(sink))),
            _ => Layer::Plain(sink),
        };
        Self { layer, raw: Vec::new() }
    }

    /// Reports whether the sink accepts no more bytes.
    pub(crate) fn is_full(&self) -> bool {
        self.sink().is_full()
    }

    /// Decodes the next piece. A full sink is not an error.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<(), Undecodable> {
        let sink = self.sink_mut();
        sink.encoded = sink.encoded.map(|bytes| bytes + piece.len() as u64);
        if sink.encoded.is_some() && self.raw.len() < MAX_RAW_START {
            self.raw.extend_from_slice(piece);
        }
        let written = match &mut self.layer {
            Layer::Plain(sink) => sink.write_all(piece),
            Layer::Gzip(decoder) => decoder.write_all(piece),
            Layer::Zlib(decoder) => decoder.write_all(piece),
            Layer::Deflate(decoder) => decoder.write_all(piece),
        };
        if written.is_ok() {
            return Ok(());
        }
        // Bytes decoded before the fault are still buffered.
        let _ = self.drain();
        self.error_unless_full()
    }

    /// Flushes the decoder. Fails if the encoded body is incomplete.
    pub(crate) fn finish(&mut self) -> Result<(), Undecodable> {
        if self.drain().is_ok() { Ok(()) } else { self.error_unless_full() }
    }

    fn drain(&mut self) -> io::Result<()> {
        match &mut self.layer {
            Layer::Plain(_) => Ok(()),
            Layer::Gzip(decoder) => decoder.try_finish(),
            Layer::Zlib(decoder) => decoder.try_finish(),
            Layer::Deflate(decoder) => decoder.try_finish(),
        }
    }

    fn error_unless_full(&mut self) -> Result<(), Undecodable> {
        if self.is_full() {
            return Ok(());
        }
        let raw = (self.sink().accepted() == 0).then(|| std::mem::take(&mut self.raw));
        Err(Undecodable { raw })
    }

    fn sink(&self) -> &BodySink<'run> {
        match &self.layer {
            Layer::Plain(sink) => sink,
            Layer::Gzip(decoder) => decoder.get_ref(),
            Layer::Zlib(decoder) => decoder.get_ref(),
            Layer::Deflate(decoder) => decoder.get_ref(),
        }
    }

    fn sink_mut(&mut self) -> &mut BodySink<'run> {
        match &mut self.layer {
            Layer::Plain(sink) => sink,
            Layer::Gzip(decoder) => decoder.get_mut(),
            Layer::Zlib(decoder) => decoder.get_mut(),
            Layer::Deflate(decoder) => decoder.get_mut(),
        }
    }
}
