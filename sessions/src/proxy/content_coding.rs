//! Compressed answers: decoded for the record, within a limit. What the client gets is not touched.

use std::io::{self, Write};

use axum::http::HeaderMap;
use axum::http::header::CONTENT_ENCODING;
use brotli_decompressor::{BrotliDecoderParameter, DecompressorWriter};
use flate2::write::{MultiGzDecoder, ZlibDecoder};
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// The window that RFC 9659 allows for this coding.
const MAX_ZSTD_WINDOW: u64 = 8 << 20;

/// An empty block that ends a frame, and room for a checksum.
const ZSTD_END: &[u8] = &[1, 0, 0, 0, 0, 0, 0];

pub(super) enum Decoder {
    Identity {
        left: usize,
    },
    Gzip(MultiGzDecoder<Limited>),
    Deflate(ZlibDecoder<Limited>),
    Brotli(Box<DecompressorWriter<Limited>>),
    /// What has come. The decoder keeps the last bytes of a frame, up to the window, until the frame ends.
    Zstd {
        compressed: Vec<u8>,
        sink: Limited,
    },
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
            "br" => {
                let mut decoder = DecompressorWriter::new(sink, 0);
                // A large window is up to 1 GiB, and not part of the coding `br`.
                decoder.set_parameter(BrotliDecoderParameter::BROTLI_DECODER_PARAM_LARGE_WINDOW, 0);
                Self::Brotli(Box::new(decoder))
            }
            "zstd" => Self::Zstd { compressed: Vec::new(), sink },
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

    /// Returns true if everything is decoded in [`Self::finish`].
    pub(super) const fn waits_for_end(&self) -> bool {
        matches!(self, Self::Zstd { .. })
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
            Self::Brotli(decoder) => (write_to(decoder.as_mut(), piece), decoder.get_mut()),
            Self::Zstd { compressed, sink } => {
                let taken = piece.len().min(sink.left.saturating_sub(compressed.len()));
                compressed.extend_from_slice(&piece[..taken]);
                return if taken == piece.len() { Ok(()) } else { Err(DecodeError::TooLarge) };
            }
        };
        on_bytes(&std::mem::take(&mut sink.bytes));
        decoded.map_err(|_| sink.error())
    }

    /// Passes on what was not decoded before the end. The answer may have been cut.
    pub(super) fn finish(&mut self, on_bytes: impl FnOnce(&[u8])) -> Result<(), DecodeError> {
        let Self::Zstd { compressed, sink } = self else { return Ok(()) };
        let decoded = decode_zstd(&std::mem::take(compressed), sink);
        on_bytes(&std::mem::take(&mut sink.bytes));
        decoded.map_err(|_| sink.error())
    }
}

/// Decodes the whole blocks of all frames.
fn decode_zstd(mut rest: &[u8], sink: &mut Limited) -> Result<(), FrameDecoderError> {
    while !rest.is_empty() {
        let mut frame = FrameDecoder::new();
        frame.set_max_window_size(MAX_ZSTD_WINDOW);
        match frame.init(&mut rest) {
            Ok(()) => {}
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                rest = rest.get(length as usize..).unwrap_or_default();
                continue;
            }
            Err(error) => return Err(error),
        }
        let decoded = decode_blocks(&mut frame, &mut rest, sink);
        if !frame.is_finished() {
            rest = &[];
            frame.decode_blocks(ZSTD_END, BlockDecodingStrategy::UptoBlocks(1))?;
        }
        frame.collect_to_writer(&mut *sink).map_err(FrameDecoderError::FailedToDrainDecodebuffer)?;
        decoded?;
    }
    Ok(())
}

fn decode_blocks(frame: &mut FrameDecoder, rest: &mut &[u8], sink: &mut Limited) -> Result<(), FrameDecoderError> {
    while !frame.is_finished() && has_block(rest) {
        frame.decode_blocks(&mut *rest, BlockDecodingStrategy::UptoBlocks(1))?;
        frame.collect_to_writer(&mut *sink).map_err(FrameDecoderError::FailedToDrainDecodebuffer)?;
    }
    Ok(())
}

/// Returns true if bytes start with a whole block (RFC 8878, section 3.1.1.2).
fn has_block(bytes: &[u8]) -> bool {
    const REPEATED_BYTE: u32 = 1;
    let [first, second, third, content @ ..] = bytes else { return false };
    let header = u32::from_le_bytes([*first, *second, *third, 0]);
    let length = if (header >> 1) & 3 == REPEATED_BYTE { 1 } else { header >> 3 };
    content.len() >= length as usize
}

fn write_to(decoder: &mut impl Write, piece: &[u8]) -> io::Result<()> {
    decoder.write_all(piece)?;
    // An event must not wait in the decoder for the next piece.
    decoder.flush()
}

impl Limited {
    const fn error(&self) -> DecodeError {
        if self.is_full { DecodeError::TooLarge } else { DecodeError::Damaged }
    }
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
    use base64::Engine as _;
    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};
    use proptest::prelude::*;

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
        for coding in ["compress", "gzip, br"] {
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

    /// Two events as the coders of the reference libraries write them, with a flush after each.
    const BROTLI: &str = "iz0AACyLd4izYY5uVpwIGztwdVRQfK1Q1jesPnkbJEZuTx3RFYtOi8Do4G0RnS86Ojlg/o/fap4lSWihBbqxUsZ+RLtyw/u6FvfZ\
        mlaPLeeSVhhoGTRnpl8lAH/0iQoM2AMAwJGYboPIJ7nNrymHeT+h3NZX0ri8IMZvRQTXRQyKWEd0Ojlg/n9rq3nzJCCKNfAYPs+i\
        EOVMfStaA7vebPTd5Y93JkLWBGMsKgEteWaeLSUAPywrvfK/mQED";

    /// With a checksum.
    const ZSTD: &str = "KLUv/QRY5AIAAkUSG6CnOXMVUpWQ+f3J7ou3h3MpgXocYjBjJAjCYIQ4V6MY8RKPcBRr+uZjawpss8pATYv1wPAeCqIjRdCX1REk\
        tgDn6SdLBZ8uOAUAMAI3eJCpCsPq+jKJKgNsAAAwMiJ9fQoKAQDzTwMQAQAAOxShUw==";

    fn event(number: u8) -> String {
        let data = format!(
            r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"Grüße {number}"}}}}"#
        );
        format!("event: content_block_delta\ndata: {data}\n\n")
    }

    fn bytes(text: &str) -> Vec<u8> {
        base64::engine::general_purpose::STANDARD.decode(text).unwrap()
    }

    /// What is decoded of pieces, and at the end.
    fn decoded(coding: &'static str, limit: usize, pieces: &[&[u8]]) -> (Vec<u8>, Result<(), DecodeError>) {
        let (mut decoder, mut found, mut result) = (decoder(coding, limit), Vec::new(), Ok(()));
        for piece in pieces {
            result = result.and(decoder.push(piece, |bytes| found.extend_from_slice(bytes)));
        }
        let end = decoder.finish(|bytes| found.extend_from_slice(bytes));
        (found, result.and(end))
    }

    #[test]
    fn an_event_of_brotli_is_decoded_when_its_bytes_have_come() {
        let (bytes, mut found) = (bytes(BROTLI), Vec::new());
        let mut decoder = decoder("br", 1000);
        for (number, piece) in [(1, &bytes[..96]), (2, &bytes[96..188])] {
            found.clear();
            for byte in piece {
                decoder.push(&[*byte], |piece| found.extend_from_slice(piece)).unwrap();
            }
            assert_eq!(found, event(number).as_bytes());
        }
    }

    #[test]
    fn brotli_and_zstd_are_decoded_in_any_pieces() {
        let text = event(1) + &event(2);
        for (coding, stored) in [("br", BROTLI), ("zstd", ZSTD)] {
            let bytes = bytes(stored);
            for size in [1, 7, 64, 1000] {
                let pieces: Vec<_> = bytes.chunks(size).collect();
                assert_eq!(decoded(coding, 1000, &pieces), (text.clone().into_bytes(), Ok(())), "{coding} {size}");
            }
            let (found, error) = decoded(coding, 130, &[&bytes]);
            assert_eq!((found.as_slice(), error), (&text.as_bytes()[..130], Err(DecodeError::TooLarge)), "{coding}");
            for length in 0..bytes.len() {
                let (found, _) = decoded(coding, 1000, &[&bytes[..length]]);
                assert!(text.as_bytes().starts_with(&found), "{coding} {length}");
            }
            assert_eq!(decoded(coding, 1000, &[b"not compressed at all"]).1, Err(DecodeError::Damaged), "{coding}");
        }
        // The first event, its frame without an end.
        assert_eq!(decoded("zstd", 1000, &[&bytes(ZSTD)[..101]]), (event(1).into_bytes(), Ok(())));
    }

    #[test]
    fn zstd_has_frames_that_follow_each_other_and_frames_that_are_skipped() {
        let frame = bytes(ZSTD);
        let skipped = b"\x50\x2a\x4d\x18\x03\0\0\0abc";
        let (found, result) = decoded("zstd", 1000, &[&frame, skipped, &frame]);
        assert_eq!((found.len(), result), (2 * (event(1) + &event(2)).len(), Ok(())));
        // A window of 16 MiB.
        assert_eq!(decoded("zstd", 1000, &[b"\x28\xb5\x2f\xfd\0\x70"]).1, Err(DecodeError::Damaged));
    }

    #[test]
    fn a_limit_holds_for_zstd_of_a_repeated_byte() {
        // Blocks of 128 KiB of `x` each.
        let block = [0x02, 0, 0x10, b'x'];
        let bomb = [b"\x28\xb5\x2f\xfd\0\x58".as_slice(), &block.repeat(10_000)].concat();
        let (found, error) = decoded("zstd", 1_000_000, &[&bomb]);
        assert_eq!((found.len(), error), (1_000_000, Err(DecodeError::TooLarge)));
    }

    proptest! {
        #[test]
        fn damaged_bytes_end_with_an_error_or_a_text(
            changes in prop::collection::vec((0..124_usize, any::<u8>()), 1..4),
            is_zstd in any::<bool>(),
        ) {
            let (coding, stored) = if is_zstd { ("zstd", ZSTD) } else { ("br", BROTLI) };
            let mut bytes = bytes(stored);
            for (at, byte) in changes {
                bytes[at] = byte;
            }
            prop_assert!(decoded(coding, 1000, &[&bytes]).0.len() <= 1000);
        }
    }
}
