//! Content encodings, undone as the bytes come. How much is taken is decided by the [`Store`] behind.

use std::io::{self, Write};

use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

use crate::response::body_sink::Store;

/// Bytes that are kept as they came until something of them could be decoded.
const RAW_START: usize = 64 * 1024;

/// A decoder in front of a store.
pub(crate) struct Decoder<'store, 'run> {
    layer: Layer<'store, 'run>,
    /// The start as it came, which is all there is to show where nothing can be decoded.
    raw: Vec<u8>,
}

enum Layer<'store, 'run> {
    Plain(&'store mut Store<'run>),
    Gzip(Box<MultiGzDecoder<&'store mut Store<'run>>>),
    Zlib(Box<ZlibDecoder<&'store mut Store<'run>>>),
    Deflate(Box<DeflateDecoder<&'store mut Store<'run>>>),
}

/// The bytes are not in the encoding that they claim.
#[derive(Debug)]
pub(crate) struct Undecodable {
    /// The start of what came, where nothing of it could be decoded.
    pub(crate) raw: Option<Vec<u8>>,
}

/// True for the encodings that the runner undoes.
pub(crate) fn is_known(encoding: &str) -> bool {
    matches!(encoding, "" | "identity" | "gzip" | "x-gzip" | "deflate")
}

impl<'store, 'run> Decoder<'store, 'run> {
    /// A decoder for a `Content-Encoding`, for a body that begins with `first`. What is not known is passed on as it comes.
    pub(crate) fn new(encoding: &str, first: u8, store: &'store mut Store<'run>) -> Self {
        if matches!(encoding, "gzip" | "x-gzip" | "deflate") {
            store.encoded = Some(0);
        }
        let layer = match encoding {
            "gzip" | "x-gzip" => Layer::Gzip(Box::new(MultiGzDecoder::new(store))),
            // By the standard it is zlib, whose first byte names its method (RFC 1950, section 2.2); in practice it is
            // often bare, and then begins with a block that no encoder would begin in that way.
            "deflate" if first & 0x0f == 8 => Layer::Zlib(Box::new(ZlibDecoder::new(store))),
            "deflate" => Layer::Deflate(Box::new(DeflateDecoder::new(store))),
            _ => Layer::Plain(store),
        };
        Self { layer, raw: Vec::new() }
    }

    /// True where the store takes no more.
    pub(crate) fn is_full(&self) -> bool {
        self.store().is_full()
    }

    /// Takes the next piece. A store that is full is no error of the decoder.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<(), Undecodable> {
        let store = self.store_mut();
        store.encoded = store.encoded.map(|bytes| bytes + piece.len() as u64);
        if store.encoded.is_some() && self.raw.len() < RAW_START {
            self.raw.extend_from_slice(piece);
        }
        let written = match &mut self.layer {
            Layer::Plain(store) => store.write_all(piece),
            Layer::Gzip(decoder) => decoder.write_all(piece),
            Layer::Zlib(decoder) => decoder.write_all(piece),
            Layer::Deflate(decoder) => decoder.write_all(piece),
        };
        if written.is_ok() {
            return Ok(());
        }
        // What was decoded before the fault is still inside.
        let _ = self.drain();
        self.judge()
    }

    /// Takes out what is still inside. An error where the encoded bytes have no end.
    pub(crate) fn finish(&mut self) -> Result<(), Undecodable> {
        if self.drain().is_ok() { Ok(()) } else { self.judge() }
    }

    fn drain(&mut self) -> io::Result<()> {
        match &mut self.layer {
            Layer::Plain(_) => Ok(()),
            Layer::Gzip(decoder) => decoder.try_finish(),
            Layer::Zlib(decoder) => decoder.try_finish(),
            Layer::Deflate(decoder) => decoder.try_finish(),
        }
    }

    fn judge(&mut self) -> Result<(), Undecodable> {
        if self.is_full() {
            return Ok(());
        }
        let raw = (self.store().taken() == 0).then(|| std::mem::take(&mut self.raw));
        Err(Undecodable { raw })
    }

    fn store(&self) -> &Store<'run> {
        match &self.layer {
            Layer::Plain(store) => store,
            Layer::Gzip(decoder) => decoder.get_ref(),
            Layer::Zlib(decoder) => decoder.get_ref(),
            Layer::Deflate(decoder) => decoder.get_ref(),
        }
    }

    fn store_mut(&mut self) -> &mut Store<'run> {
        match &mut self.layer {
            Layer::Plain(store) => store,
            Layer::Gzip(decoder) => decoder.get_mut(),
            Layer::Zlib(decoder) => decoder.get_mut(),
            Layer::Deflate(decoder) => decoder.get_mut(),
        }
    }
}
