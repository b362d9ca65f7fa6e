//! Where the decoded bytes of a body go: memory while it may be an answer, then the disk, redacted on the way. Neither what
//! the bytes mean nor what the file is called is decided here.

use std::io::{self, Write};

use counterproof_redaction::{Applied, RedactingStream, Redactor};
use counterproof_store::write::WriteError;
use counterproof_store::{RunWriter, UnnamedAsset};

/// A compressed body that grows by more than this is no message but an attack, or a mistake that works like one.
const MAX_RATIO: u64 = 100;

/// Growth is of no concern before this many bytes.
const RATIO_FLOOR: u64 = 1024 * 1024;

/// How much is kept, and where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// Most bytes that are kept at all.
    pub(crate) body: usize,
    /// Most bytes that are kept in memory.
    pub(crate) memory: usize,
    /// Most bytes of the start that are kept in memory beside the file.
    pub(crate) snippet: usize,
}

/// What was kept of a body.
#[derive(Debug)]
pub(crate) enum Held {
    /// All of it, as it came.
    Memory(Vec<u8>),
    /// A file without a name yet, already redacted.
    Disk {
        spool: Box<UnnamedAsset>,
        /// The start of the file.
        start: Vec<u8>,
        is_text: bool,
        applied: Applied,
    },
}

impl Default for Held {
    fn default() -> Self {
        Self::Memory(Vec::new())
    }
}

/// How much of a body there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Extent {
    /// All of it.
    #[default]
    Whole,
    /// Less than there was, so that it may end within a secret.
    Cut,
}

/// Why no more is taken.
#[derive(Debug)]
pub(crate) enum Full {
    /// The limit was reached.
    Limit,
    /// The body grows out of all proportion while it is decoded.
    Ratio,
    /// The disk would not take it.
    Disk(WriteError),
}

/// Takes the bytes of one body.
pub(crate) struct Store<'run> {
    run: &'run RunWriter,
    redactor: &'run Redactor,
    room: Room,
    /// Bytes that came so far from the network, where they are compressed.
    pub(crate) encoded: Option<u64>,
    taken: usize,
    memory: Vec<u8>,
    disk: Option<Disk>,
    full: Option<Full>,
}

struct Disk {
    spool: UnnamedAsset,
    redacting: RedactingStream,
    start: Vec<u8>,
    text: TextCheck,
}

impl<'run> Store<'run> {
    pub(crate) fn new(run: &'run RunWriter, redactor: &'run Redactor, room: Room) -> Self {
        Self { run, redactor, room, encoded: None, taken: 0, memory: Vec::new(), disk: None, full: None }
    }

    /// How many bytes were taken.
    pub(crate) const fn taken(&self) -> usize {
        self.taken
    }

    /// True where no more is taken.
    pub(crate) const fn is_full(&self) -> bool {
        self.full.is_some()
    }

    /// What was kept, and why it ended early.
    pub(crate) fn finish(mut self, extent: Extent) -> Result<(Held, Option<Full>), WriteError> {
        if let Some(Full::Disk(error)) = self.full {
            return Err(error);
        }
        let Some(mut disk) = self.disk.take() else { return Ok((Held::Memory(self.memory), self.full)) };
        let redacting = std::mem::replace(&mut disk.redacting, RedactingStream::new(self.redactor.clone()));
        let (rest, applied) = match extent {
            Extent::Whole => redacting.finish(),
            Extent::Cut => redacting.finish_cut(),
        };
        disk.write(&rest, self.room.snippet).map_err(|source| self.at_disk(source))?;
        let held = Held::Disk { spool: Box::new(disk.spool), start: disk.start, is_text: disk.text.finish(), applied };
        Ok((held, self.full))
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), Full> {
        self.taken += bytes.len();
        if self.disk.is_none() && self.taken <= self.room.memory {
            self.memory.extend_from_slice(bytes);
            return Ok(());
        }
        let snippet = self.room.snippet;
        let started = if self.disk.is_none() { std::mem::take(&mut self.memory) } else { Vec::new() };
        let disk = match &mut self.disk {
            Some(disk) => disk,
            None => self.disk.insert(Disk {
                spool: self.run.unnamed_asset().map_err(Full::Disk)?,
                redacting: RedactingStream::new(self.redactor.clone()),
                start: Vec::new(),
                text: TextCheck::default(),
            }),
        };
        // In pieces, so that what waits within the redactor stays small.
        let written = started.chunks(64 * 1024).chain([bytes]).try_for_each(|piece| {
            let out = disk.redacting.push(piece);
            disk.write(&out, snippet)
        });
        written.map_err(|source| Full::Disk(self.at_disk(source)))
    }

    fn at_disk(&self, source: io::Error) -> WriteError {
        WriteError { path: self.run.folder().join(counterproof_store::ASSETS_FOLDER), source }
    }
}

impl Disk {
    /// Goes to the system's memory, mostly; the wait for the disk itself comes when the file gets its name.
    fn write(&mut self, bytes: &[u8], snippet: usize) -> io::Result<()> {
        let room = snippet.saturating_sub(self.start.len()).min(bytes.len());
        self.start.extend_from_slice(&bytes[..room]);
        self.text.push(bytes);
        self.spool.write_all(bytes)
    }
}

impl Write for Store<'_> {
    /// An error means that the store is full; what for is told at the end.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_full() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let room = (self.room.body - self.taken).min(bytes.len());
        let mut full = self.take(&bytes[..room]).err();
        let (taken, encoded) = (self.taken as u64, self.encoded.unwrap_or(u64::MAX));
        if full.is_none() && taken > RATIO_FLOOR && taken > encoded.saturating_mul(MAX_RATIO) {
            full = Some(Full::Ratio);
        } else if full.is_none() && room < bytes.len() {
            full = Some(Full::Limit);
        }
        self.full = full;
        if self.is_full() { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether bytes that come in pieces are UTF-8.
#[derive(Debug, Default)]
struct TextCheck {
    /// The start of a character whose end is still to come: at most three bytes.
    open: Vec<u8>,
    broken: bool,
}

impl TextCheck {
    fn push(&mut self, bytes: &[u8]) {
        let mut bytes = bytes;
        while !self.broken && !self.open.is_empty() && !bytes.is_empty() {
            self.open.push(bytes[0]);
            bytes = &bytes[1..];
            match std::str::from_utf8(&self.open) {
                Ok(_) => self.open.clear(),
                Err(error) => self.broken = error.error_len().is_some(),
            }
        }
        if self.broken || bytes.is_empty() {
            return;
        }
        if let Err(error) = std::str::from_utf8(bytes) {
            self.broken = error.error_len().is_some();
            self.open.extend_from_slice(&bytes[error.valid_up_to()..]);
        }
    }

    fn finish(&self) -> bool {
        !self.broken && self.open.is_empty()
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
        check.finish()
    }

    #[test]
    fn text_is_text_wherever_it_is_cut() {
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
