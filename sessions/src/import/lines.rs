//! Reads the lines and documents of files of other programs, with bounded memory, and masks secrets in them.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Read};

use camino::Utf8Path;
use counterproof_redaction::{Applied, JsonUse, Redactor, redact_json};
use counterproof_store::read_file;
use ruzstd::decoding::StreamingDecoder;
use serde_json::Value;

/// Maximum length of a line in bytes. A longer one counts as unreadable. Images within a line have several MiB.
pub const MAX_LINE_BYTES: usize = 64 << 20;

/// Maximum size of a document that is not one of lines.
pub const MAX_DOCUMENT_BYTES: u64 = read_file::MAX_DOCUMENT_BYTES;

/// Maximum length of all lines of a session. They are held in memory.
pub const MAX_SESSION_BYTES: u64 = 512 << 20;

/// How much of an unreadable line is stored.
const MAX_OPAQUE_BYTES: usize = 64 << 10;

/// A line, or a document of a file with several.
pub(super) enum Record {
    Value(Value),
    /// A text that is not JSON, or too deep, or too long.
    Unreadable(String),
}

/// Masks secrets and counts them.
pub(super) struct Masker<'a> {
    redactor: &'a Redactor,
    pub(super) found: u64,
}

impl<'a> Masker<'a> {
    pub(super) fn new(redactor: &'a Redactor) -> Self {
        Self { redactor, found: 0 }
    }

    /// The text that replaces secrets.
    pub(super) fn mask_text(&self) -> &'static str {
        self.redactor.replacement()
    }

    /// Masks the secrets of a line or document, which stays JSON if it is.
    pub(super) fn mask<'t>(&mut self, text: &'t [u8]) -> Cow<'t, [u8]> {
        let masked = redact_json(self.redactor, text, JsonUse::Storage, &mut Applied::default());
        if let Cow::Owned(masked) = &masked {
            let mask = self.redactor.replacement();
            self.found += count(masked, mask).saturating_sub(count(text, mask)).max(1);
        }
        masked
    }
}

fn count(text: &[u8], mask: &str) -> u64 {
    String::from_utf8_lossy(text).matches(mask).count() as u64
}

/// Calls `each` with the records of a file. Returns early with the error of `each`.
///
/// A last line without a line break that is not JSON is a line that is being written: it is ignored.
pub(super) fn read_lines(
    path: &Utf8Path,
    masker: &mut Masker<'_>,
    budget: &mut u64,
    each: &mut dyn FnMut(Record),
) -> io::Result<()> {
    let mut lines = Lines::open(path)?;
    while let Some(line) = lines.next()? {
        *budget = budget.checked_sub(line.length).ok_or_else(too_large)?;
        let masked = masker.mask(&line.text);
        match parse(&masked) {
            Some(value) if !line.is_cut => each(Record::Value(value)),
            _ if !line.is_complete => {}
            _ => each(Record::Unreadable(excerpt(&masked))),
        }
    }
    Ok(())
}

/// Calls `each` with the documents of a file: one, several, or one a line.
pub(super) fn read_documents(
    path: &Utf8Path,
    masker: &mut Masker<'_>,
    budget: &mut u64,
    each: &mut dyn FnMut(Record),
) -> io::Result<()> {
    if is_lines(path)? {
        return read_lines(path, masker, budget, each);
    }
    let text = read_file::read(path, MAX_DOCUMENT_BYTES)?;
    let masked = masker.mask(without_mark(&text));
    let mut rest = serde_json::Deserializer::from_slice(&masked).into_iter::<Value>();
    loop {
        match rest.next() {
            Some(Ok(value)) => each(Record::Value(value)),
            // The end of a document that is being written.
            Some(Err(error)) if error.is_eof() && rest.byte_offset() > 0 => return Ok(()),
            Some(Err(_)) => {
                match parse(&masked) {
                    Some(value) => each(Record::Value(value)),
                    None => each(Record::Unreadable(excerpt(&masked[rest.byte_offset().min(masked.len())..]))),
                }
                return Ok(());
            }
            None => return Ok(()),
        }
    }
}

/// Whether the first line is a value of its own, and more follows.
fn is_lines(path: &Utf8Path) -> io::Result<bool> {
    if path.extension() == Some("zst") {
        return Ok(true);
    }
    let Some(first) = Lines::open(path)?.next()? else { return Ok(true) };
    Ok(first.is_complete && parse(&first.text).is_some())
}

pub(super) fn too_large() -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, format!("a session has more than {MAX_SESSION_BYTES} bytes"))
}

/// The lines of a file that are not blank.
pub(super) struct Lines {
    source: Box<dyn BufRead>,
    is_first: bool,
    /// Maximum length of a line.
    limit: u64,
}

pub(super) struct RawLine {
    pub(super) text: Vec<u8>,
    /// True if a line break follows.
    pub(super) is_complete: bool,
    /// True if the line is longer than [`MAX_LINE_BYTES`], and `text` is only its start.
    pub(super) is_cut: bool,
    /// With the blank lines before it.
    pub(super) length: u64,
}

impl Lines {
    pub(super) fn open(path: &Utf8Path) -> io::Result<Self> {
        let (file, _) = read_file::open(path)?;
        let file = BufReader::with_capacity(1 << 16, file);
        let source: Box<dyn BufRead> = match path.extension() {
            Some("zst") => Box::new(BufReader::with_capacity(1 << 16, ZstdFrames { source: Some(file), frame: None })),
            _ => Box::new(file),
        };
        Ok(Self { source, is_first: true, limit: MAX_SESSION_BYTES })
    }

    /// Returns the next line. One that is longer than all lines of a session may be is an error: a small compressed file can
    /// have lines that take hours to read.
    pub(super) fn next(&mut self) -> io::Result<Option<RawLine>> {
        let mut length = 0;
        loop {
            let mut text = Vec::new();
            let limit = MAX_LINE_BYTES as u64;
            self.source.by_ref().take(limit).read_until(b'\n', &mut text)?;
            if text.is_empty() {
                return Ok(None);
            }
            length += text.len() as u64;
            if length > self.limit {
                return Err(too_large());
            }
            let mut line = RawLine { is_complete: false, is_cut: false, length, text };
            if line.text.last() == Some(&b'\n') {
                line.is_complete = true;
                line.text.pop();
            } else if line.text.len() as u64 == limit {
                line.is_cut = true;
                (line.is_complete, line.length) = self.skip(length)?;
                length = line.length;
                line.text.truncate(MAX_OPAQUE_BYTES);
            }
            if std::mem::take(&mut self.is_first) {
                line.text.drain(..line.text.len() - without_mark(&line.text).len());
            }
            if !line.text.iter().all(u8::is_ascii_whitespace) {
                return Ok(Some(line));
            }
        }
    }

    /// Skips the rest of a line. Returns whether it ends, and its length; `length` was read already.
    fn skip(&mut self, mut length: u64) -> io::Result<(bool, u64)> {
        loop {
            let piece = self.source.fill_buf()?;
            let end = piece.iter().position(|byte| *byte == b'\n');
            let used = end.map_or(piece.len(), |end| end + 1);
            self.source.consume(used);
            length += used as u64;
            if length > self.limit {
                return Err(too_large());
            }
            if end.is_some() || used == 0 {
                return Ok((end.is_some(), length));
            }
        }
    }
}

/// A byte order mark is not part of the first line.
fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}

/// The content of all frames of a compressed file.
struct ZstdFrames<R: BufRead> {
    /// `None` while a frame is read.
    source: Option<R>,
    frame: Option<StreamingDecoder<R, ruzstd::decoding::FrameDecoder>>,
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(mut source) = self.source.take() {
                if source.fill_buf()?.is_empty() {
                    self.source = Some(source);
                    return Ok(0);
                }
                self.frame = Some(StreamingDecoder::new(source).map_err(io::Error::other)?);
            }
            // After an error there is neither.
            let Some(frame) = &mut self.frame else { return Ok(0) };
            match frame.read(buffer)? {
                0 if !buffer.is_empty() => self.source = self.frame.take().map(StreamingDecoder::into_inner),
                read => return Ok(read),
            }
        }
    }
}

/// Parses JSON. Halves of surrogate pairs become U+FFFD: programs in JavaScript write them.
pub(super) fn parse(text: &[u8]) -> Option<Value> {
    serde_json::from_slice(text).ok().or_else(|| serde_json::from_slice(&with_whole_characters(text)?).ok())
}

/// Replaces halves of surrogate pairs. Returns `None` if there are none.
fn with_whole_characters(text: &[u8]) -> Option<Vec<u8>> {
    let mut repaired: Option<Vec<u8>> = None;
    let mut at = 0;
    while at + 1 < text.len() {
        if text[at] != b'\\' {
            at += 1;
            continue;
        }
        match surrogate(text, at) {
            Some(Surrogate::High) if matches!(surrogate(text, at + 6), Some(Surrogate::Low)) => at += 12,
            Some(_) => {
                repaired.get_or_insert_with(|| text.to_vec())[at..at + 6].copy_from_slice(b"\\ufffd");
                at += 6;
            }
            None => at += 2,
        }
    }
    repaired
}

enum Surrogate {
    High,
    Low,
}

fn surrogate(text: &[u8], at: usize) -> Option<Surrogate> {
    let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
    match u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()? {
        0xd800..=0xdbff => Some(Surrogate::High),
        0xdc00..=0xdfff => Some(Surrogate::Low),
        _ => None,
    }
}

fn excerpt(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(MAX_OPAQUE_BYTES)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_surrogate_pairs_become_replacement_characters() {
        assert_eq!(parse(br#""a\ud83d""#), Some("a\u{fffd}".into()));
        assert_eq!(parse(br#""\ud83d\ude00 \ude00 \\ud83d""#), Some("😀 \u{fffd} \\ud83d".into()));
        assert_eq!(parse(br#""\ud83d"#), None);
    }

    /// A frame of compressed data that repeats bytes. It has 4 bytes for each 128 KiB.
    fn repeated(pieces: &[(u8, u64)]) -> Vec<u8> {
        const BLOCK: u64 = 128 << 10;
        let blocks: Vec<(u8, u64)> = pieces
            .iter()
            .flat_map(|(byte, length)| {
                (0..length.div_ceil(BLOCK)).map(move |at| (*byte, BLOCK.min(length - at * BLOCK)))
            })
            .collect();
        // The magic number, a header without the size of the content, and a window of 128 KiB.
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 7 << 3];
        for (at, (byte, length)) in blocks.iter().enumerate() {
            let header = length << 3 | 1 << 1 | u64::from(at + 1 == blocks.len());
            frame.extend_from_slice(&header.to_le_bytes()[..3]);
            frame.push(*byte);
        }
        frame
    }

    #[test]
    fn a_small_file_of_endless_lines_is_read_as_far_as_a_session_may_be() {
        let lines = |pieces: &[(u8, u64)], limit| {
            let source = ZstdFrames { source: Some(io::Cursor::new(repeated(pieces))), frame: None };
            Lines { source: Box::new(BufReader::new(source)), is_first: true, limit }
        };
        let long = (MAX_LINE_BYTES + 9) as u64;
        let pieces = [(b' ', 3), (b'\n', 2), (b'a', 2), (b'\n', 1), (b'b', long), (b'\n', 1), (b'c', 1)];
        let mut read = lines(&pieces, MAX_SESSION_BYTES);
        let mut next = || read.next().unwrap().map(|line| (line.text[0], line.length, line.is_cut, line.is_complete));
        assert_eq!(next(), Some((b'a', 8, false, true)));
        assert_eq!(next(), Some((b'b', long + 1, true, true)));
        assert_eq!(next(), Some((b'c', 1, false, false)));
        assert_eq!(next(), None);
        for (byte, limit) in [(b'x', long), (b' ', long), (b'\n', 1 << 10)] {
            let mut lines = lines(&[(byte, 1 << 36)], limit);
            assert_eq!(lines.next().err().map(|error| error.kind()), Some(io::ErrorKind::FileTooLarge), "{byte}");
        }
    }
}
