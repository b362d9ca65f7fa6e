//! Bytes that may become many: the last of them are in memory, the others in a file without a name.

use std::fs::File;
use std::io::{self, Read, Write};

/// How much is in memory before a file is made, in bytes: what most commands print stays below it.
const HELD: usize = 256 * 1024;

/// Bytes, written once and read from anywhere.
#[derive(Debug, Default)]
pub(crate) struct Spool {
    file: Option<File>,
    /// How much is in the file.
    filed: u64,
    /// What comes behind the file.
    tail: Vec<u8>,
}

impl Spool {
    /// How much there is, in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.filed + self.tail.len() as u64
    }

    fn spill(&mut self) -> io::Result<&mut File> {
        let file = match self.file.take() {
            Some(file) => file,
            None => tempfile::tempfile()?,
        };
        let file = self.file.insert(file);
        file.write_all(&self.tail)?;
        self.filed += self.tail.len() as u64;
        self.tail.clear();
        Ok(file)
    }

    /// Reads at a place; 0 at the end.
    pub(crate) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        match &self.file {
            Some(file) if offset < self.filed => read_at(file, offset, buffer),
            _ => {
                let start = usize::try_from(offset - self.filed).unwrap_or(usize::MAX).min(self.tail.len());
                (&self.tail[start..]).read(buffer)
            }
        }
    }

    /// Reads from a place to the end.
    pub(crate) fn reader(&self, offset: u64) -> Reader<'_> {
        Reader { spool: self, offset }
    }

    /// Copies a part.
    pub(crate) fn copy(&self, from: u64, to: u64, out: &mut impl Write) -> io::Result<()> {
        let copied = io::copy(&mut self.reader(from).take(to - from), out)?;
        if copied == to - from { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.tail.len() + bytes.len() <= HELD {
            self.tail.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        let written = self.spill()?.write(bytes)?;
        self.filed += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// See [`Spool::reader`].
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    spool: &'a Spool,
    offset: u64,
}

impl Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.spool.read_at(self.offset, buffer)?;
        self.offset += read as u64;
        Ok(read)
    }
}

#[cfg(unix)]
fn read_at(file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_at(file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn what_is_written_is_read_again_from_anywhere(
            pieces in prop::collection::vec((0_usize..3 * HELD / 2, any::<u8>()), 0..6), from in 0.0..1.0
        ) {
            let (mut spool, mut all) = (Spool::default(), Vec::new());
            for (length, byte) in pieces {
                let piece = vec![byte; length];
                spool.write_all(&piece).unwrap();
                all.extend(piece);
                prop_assert!(spool.tail.len() <= HELD);
            }
            prop_assert_eq!(spool.len(), all.len() as u64);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place within the bytes")]
            let from = (from * all.len() as f64) as usize;
            let mut read = Vec::new();
            spool.copy(from as u64, all.len() as u64, &mut read).unwrap();
            prop_assert!(read == all[from..]);
        }
    }
}
