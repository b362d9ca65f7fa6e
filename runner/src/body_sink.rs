//! What an agent sent, independent of the transport: `http` and `process` read the bytes, this module bounds and stores them,
//! in memory or in a redacted file. Nothing here reads from a connection or a pipe.

use std::error::Error;
use std::io::{self, Write};

use counterproof_redaction::{Applied, RedactingStream, Redactor};
use counterproof_store::write::WriteError;
use counterproof_store::{RunWriter, UnnamedAsset};

use crate::settings::ByteLimits;

/// The maximum ratio of decoded to encoded bytes. A higher one is a decompression bomb.
const MAX_RATIO: u64 = 100;

/// The ratio is not checked below this many decoded bytes.
const MIN_RATIO_BYTES: u64 = 1024 * 1024;

/// Bytes are passed to the redactor in pieces of this size, which bounds its buffer.
const REDACTION_PIECE: usize = 64 * 1024;

/// Where bodies are stored, and what masks secrets in them.
#[derive(Clone, Copy)]
pub(crate) struct BodyDestination<'run> {
    pub(crate) run: &'run RunWriter,
    pub(crate) redactor: &'run Redactor,
}

/// Size limits of one body, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SinkLimits {
    /// The maximum of bytes that are stored at all.
    pub(crate) total: usize,
    /// The maximum of bytes that are held in memory.
    pub(crate) memory: usize,
    /// The number of leading bytes that stay in memory in addition to the file.
    pub(crate) snippet: usize,
}

impl SinkLimits {
    /// Returns the limits of an answer, which is parsed in memory.
    pub(crate) fn of_answer(bytes: ByteLimits) -> Self {
        Self { total: bytes.body, memory: bytes.answer, snippet: bytes.snippet }
    }
}

/// The stored bytes of a body.
#[derive(Debug)]
pub(crate) enum BodyBytes {
    /// All bytes, not redacted.
    Memory(Vec<u8>),
    /// A redacted file that has no name yet.
    Disk {
        asset: Box<UnnamedAsset>,
        /// The first bytes of the file.
        start: Vec<u8>,
        is_text: bool,
        applied: Applied,
    },
}

impl Default for BodyBytes {
    fn default() -> Self {
        Self::Memory(Vec::new())
    }
}

/// Whether bytes are complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Extent {
    #[default]
    Complete,
    /// Bytes are missing, so the end may split a secret.
    Truncated,
}

/// Why a sink accepts no more bytes.
#[derive(Debug)]
pub(crate) enum SinkFull {
    /// The size limit is reached.
    Limit,
    /// The decoded body is too large in proportion to the encoded one.
    Ratio,
    /// The file could not be written.
    Disk(WriteError),
}

/// The destination of the bytes of one body.
pub(crate) struct BodySink<'run> {
    destination: BodyDestination<'run>,
    limits: SinkLimits,
    /// The bytes received from the network so far, if the body is compressed.
    pub(crate) encoded: Option<u64>,
    accepted: usize,
    memory: Vec<u8>,
    file: Option<RedactedFile>,
    full: Option<SinkFull>,
}

struct RedactedFile {
    asset: UnnamedAsset,
    redacting: RedactingStream,
    start: Vec<u8>,
    text: TextCheck,
}

impl<'run> BodySink<'run> {
    pub(crate) fn new(destination: BodyDestination<'run>, limits: SinkLimits) -> Self {
        Self { destination, limits, encoded: None, accepted: 0, memory: Vec::new(), file: None, full: None }
    }

    /// Returns how many bytes were accepted.
    pub(crate) const fn accepted(&self) -> usize {
        self.accepted
    }

    /// Reports whether no more bytes are accepted.
    pub(crate) const fn is_full(&self) -> bool {
        self.full.is_some()
    }

    /// Returns the stored bytes, and why the sink became full.
    pub(crate) fn finish(mut self, extent: Extent) -> Result<(BodyBytes, Option<SinkFull>), WriteError> {
        if let Some(SinkFull::Disk(error)) = self.full {
            return Err(error);
        }
        let Some(mut file) = self.file.take() else { return Ok((BodyBytes::Memory(self.memory), self.full)) };
        // Replaced and not moved out: the last bytes of the redactor are still written to the same file.
        let redacting = std::mem::replace(&mut file.redacting, RedactingStream::new(self.destination.redactor.clone()));
        let (rest, applied) = match extent {
            Extent::Complete => redacting.finish(),
            Extent::Truncated => redacting.finish_truncated(),
        };
        file.write(&rest, self.limits.snippet).map_err(|source| self.assets_error(source))?;
        let RedactedFile { asset, start, text, .. } = file;
        Ok((BodyBytes::Disk { asset: Box::new(asset), start, is_text: text.is_text(), applied }, self.full))
    }

    fn accept(&mut self, bytes: &[u8]) -> Result<(), SinkFull> {
        self.accepted += bytes.len();
        if self.file.is_none() && self.accepted <= self.limits.memory {
            self.memory.extend_from_slice(bytes);
            return Ok(());
        }
        // Too large for an answer: move the bytes so far to a file, and stream the rest after them.
        let buffered = if self.file.is_none() { std::mem::take(&mut self.memory) } else { Vec::new() };
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(RedactedFile {
                asset: self.destination.run.unnamed_asset().map_err(SinkFull::Disk)?,
                redacting: RedactingStream::new(self.destination.redactor.clone()),
                start: Vec::new(),
                text: TextCheck::default(),
            }),
        };
        let snippet = self.limits.snippet;
        let written = buffered.chunks(REDACTION_PIECE).chain([bytes]).try_for_each(|piece| {
            let redacted = file.redacting.push(piece);
            file.write(&redacted, snippet)
        });
        written.map_err(|source| SinkFull::Disk(self.assets_error(source)))
    }

    fn assets_error(&self, source: io::Error) -> WriteError {
        let path = self.destination.run.folder().join(counterproof_store::ASSETS_FOLDER);
        WriteError { path, source }
    }
}

impl RedactedFile {
    /// Appends to the file.
    fn write(&mut self, bytes: &[u8], snippet: usize) -> io::Result<()> {
        // Without fsync: the data is synced when the file gets its name.
        let missing = snippet.saturating_sub(self.start.len()).min(bytes.len());
        self.start.extend_from_slice(&bytes[..missing]);
        self.text.push(bytes);
        self.asset.write_all(bytes)
    }
}

impl Write for BodySink<'_> {
    /// Fails if the sink is full; [`BodySink::finish`] returns the reason. A decoder in front of the sink stops on the error.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_full() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        // Cannot underflow: at most `fitting` bytes are accepted per call, so `accepted` never exceeds the total.
        let fitting = (self.limits.total - self.accepted).min(bytes.len());
        let mut full = self.accept(&bytes[..fitting]).err();
        let (accepted, encoded) = (self.accepted as u64, self.encoded.unwrap_or(u64::MAX));
        // A disk error takes precedence: it ends the run, while the other two describe the body.
        if full.is_none() && accepted > MIN_RATIO_BYTES && accepted > encoded.saturating_mul(MAX_RATIO) {
            full = Some(SinkFull::Ratio);
        } else if full.is_none() && fitting < bytes.len() {
            full = Some(SinkFull::Limit);
        }
        self.full = full;
        if self.is_full() { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The error number of EMFILE on all Unix systems: this process has too many open files.
const PROCESS_LIMIT: i32 = 24;

/// The error number of ENFILE on all Unix systems: the system has too many open files.
const SYSTEM_LIMIT: i32 = 23;

/// Returns true if a lack of file descriptors caused the error.
pub(crate) fn is_file_shortage(error: &(dyn Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| (*error).source())
        .any(|cause| cause.downcast_ref::<io::Error>().is_some_and(is_in_io_error))
}

/// An I/O error may wrap another one, which `source` skips.
fn is_in_io_error(error: &io::Error) -> bool {
    let is_inner = || error.get_ref().and_then(|inner| inner.downcast_ref()).is_some_and(is_in_io_error);
    cfg!(unix) && (matches!(error.raw_os_error(), Some(PROCESS_LIMIT | SYSTEM_LIMIT)) || is_inner())
}

/// Decides whether a byte stream is UTF-8.
#[derive(Debug, Default)]
pub(super) struct TextCheck {
    /// An incomplete character at the end of the input so far: at most three bytes.
    incomplete: Vec<u8>,
    invalid: bool,
}

impl TextCheck {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let mut bytes = bytes;
        // Byte by byte only up to the end of the character that the last piece cut, so at most three times.
        while !self.invalid && !self.incomplete.is_empty() && !bytes.is_empty() {
            self.incomplete.push(bytes[0]);
            bytes = &bytes[1..];
            match std::str::from_utf8(&self.incomplete) {
                Ok(_) => self.incomplete.clear(),
                // `error_len` is `None` for a character that is not complete yet.
                Err(error) => self.invalid = error.error_len().is_some(),
            }
        }
        if self.invalid || bytes.is_empty() {
            return;
        }
        if let Err(error) = std::str::from_utf8(bytes) {
            self.invalid = error.error_len().is_some();
            self.incomplete.extend_from_slice(&bytes[error.valid_up_to()..]);
        }
    }

    pub(super) fn is_text(&self) -> bool {
        !self.invalid && self.incomplete.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_text(pieces: &[&[u8]]) -> bool {
        let mut check = TextCheck::default();
        for piece in pieces {
            check.push(piece);
        }
        check.is_text()
    }

    #[test]
    fn pieces_may_split_characters_anywhere() {
        let text = "aé€😀z".as_bytes();
        for cut in 0..=text.len() {
            for other in cut..=text.len() {
                assert!(is_text(&[&text[..cut], &text[cut..other], &text[other..]]), "{cut} {other}");
            }
        }
        assert!(!is_text(&[b"a\xff", b"b"]));
        assert!(!is_text(&[b"a\xc3", b"b"]));
        assert!(!is_text(&[b"a\xc3"]));
    }
}

#[cfg(all(test, unix))]
mod file_shortage_tests {
    use super::*;

    #[test]
    fn a_shortage_is_found_below_other_errors() {
        for number in [PROCESS_LIMIT, SYSTEM_LIMIT] {
            let error = io::Error::from_raw_os_error(number);
            assert!(is_file_shortage(&io::Error::other(io::Error::other(error))));
        }
        assert!(!is_file_shortage(&io::Error::from(io::ErrorKind::ConnectionRefused)));
    }
}
