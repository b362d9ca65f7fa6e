//! Compressed answers: decoded for the record, within a limit. What the client gets is not touched.

use std::io::{self, Write};

use axum::http::HeaderMap;
use axum::http::header::CONTENT_ENCODING;
use flate2::write::{MultiGzDecoder, ZlibDecoder};

pub(super) enum Decoder {
    Identity { left: usize },
    Gzip(MultiGzDecoder<Limited>),
    Deflate(ZlibDecoder<Limited>),
    Unknown(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DecodeError {
    /// More than the limit.
    TooLarge,
    Damaged,
}

/// Collects at most a number of bytes.
pub(super) struct Limited {
    bytes: Vec<u8>,
    left: usize,
    is_full: bool,
}

impl Decoder {
    /// `limit` is the number of bytes that are decoded at most.
    pub(super) fn new(headers: &HeaderMap, limit: usize) -> Self {
        let codings = headers.get_all(CONTENT_ENCODING).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
        let coding = codings.collect::<Vec<_>>().join(", ").trim().to_ascii_lowercase();
        let sink = Limited { bytes: Vec::new(), left: limit, is_full: false };
        match coding.as_str() {
            "" | "identity" => Self::Identity { left: limit },
            "gzip" | "x-gzip" => Self::Gzip(MultiGzDecoder::new(sink)),
            "deflate" => Self::Deflate(ZlibDecoder::new(sink)),
            _ => Self::Unknown(coding),
        }
    }

    /// Returns the coding, if it cannot be decoded.
    pub(super) fn unknown(&self) -> Option<&str> {
        match self {
            Self::Unknown(coding) => Some(coding),
            _ => None,
        }
    }

    /// Decodes a piece, and passes on what can be read by now.
    pub(super) fn push(&mut self, piece: &[u8], mut on_bytes: impl FnMut(&[u8])) -> Result<(), DecodeError> {
        let (decoded, sink) = match self {
            Self::Unknown(_) => return Ok(()),
            Self::Identity { left } => {
                let taken = piece.len().min(*left);
                *left -= taken;
                on_bytes(&piece[..taken]);
                return if taken == piece.len() { Ok(()) } else { Err(DecodeError::TooLarge) };
            }
            Self::Gzip(decoder) => (write_to(decoder, piece), decoder.get_mut()),
            Self::Deflate(decoder) => (write_to(decoder, piece), decoder.get_mut()),
        };
        on_bytes(&std::mem::take(&mut sink.bytes));
        decoded.map_err(|_| if sink.is_full { DecodeError::TooLarge } else { DecodeError::Damaged })
    }
}

fn write_to(decoder: &mut impl Write, piece: &[u8]) -> io::Result<()> {
    decoder.write_all(piece)?;
    // An event must not wait in the decoder for the next piece.
    decoder.flush()
}

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.left);
        self.bytes.extend_from_slice(&bytes[..taken]);
        self.left -= taken;
        self.is_full |= taken < bytes.len();
        if taken == 0 && !bytes.is_empty() { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(taken) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};

    use super::*;

    fn decoder(coding: &'static str, limit: usize) -> Decoder {
        Decoder::new(&HeaderMap::from_iter([(CONTENT_ENCODING, HeaderValue::from_static(coding))]), limit)
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn pieces_are_decoded_as_they_come() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(b"data: 1\n\n").unwrap();
        encoder.flush().unwrap();
        let first = encoder.get_ref().len();
        encoder.write_all(b"data: 2\n\n").unwrap();
        let bytes = encoder.finish().unwrap();
        let (mut decoder, mut found) = (decoder("gzip", 100), Vec::new());
        decoder.push(&bytes[..first], |piece| found.extend_from_slice(piece)).unwrap();
        assert_eq!(found, b"data: 1\n\n");
        for byte in &bytes[first..] {
            decoder.push(&[*byte], |piece| found.extend_from_slice(piece)).unwrap();
        }
        assert_eq!(found, b"data: 1\n\ndata: 2\n\n");
    }

    #[test]
    fn deflate_is_decoded_and_other_codings_are_named() {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(b"text").unwrap();
        let mut found = Vec::new();
        decoder("Deflate", 10).push(&encoder.finish().unwrap(), |piece| found.extend_from_slice(piece)).unwrap();
        assert_eq!(found, b"text");
        for coding in ["br", "zstd", "gzip, br"] {
            assert_eq!(decoder(coding, 10).unknown(), Some(coding));
        }
    }

    #[test]
    fn a_limit_and_damage_are_errors_and_keep_what_came() {
        let bomb = gzip(&vec![b'x'; 10 << 20]);
        let mut found = 0;
        let error = decoder("gzip", 1000).push(&bomb, |piece| found += piece.len());
        assert_eq!((error, found), (Err(DecodeError::TooLarge), 1000));
        let error = decoder("identity", 3).push(b"1234", |piece| assert_eq!(piece, b"123"));
        assert_eq!(error, Err(DecodeError::TooLarge));
        assert_eq!(decoder("gzip", 10).push(b"not gzip at all", |_| {}), Err(DecodeError::Damaged));
    }
}
