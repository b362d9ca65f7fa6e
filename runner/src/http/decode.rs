//! Streaming decoders for content encodings. They write to a [`BodySink`], which enforces the size limits.

use std::io::{self, Write};

use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

use crate::received::BodySink;

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
