//! An append-only byte buffer that spills to an unnamed temporary file, so that memory stays bounded.

use std::fs::File;
use std::io::{self, Read, Write};

/// Bytes held in memory before the buffer creates a file. Most commands print less than that.
const MEMORY_LIMIT: usize = 256 * 1024;

/// Bytes that are appended once and can be read from any offset.
#[derive(Debug, Default)]
pub struct SpillBuffer {
    file: Option<File>,
    /// Length of the file, in bytes.
    file_len: u64,
    /// The bytes that follow those in the file.
    tail: Vec<u8>,
}

impl SpillBuffer {
    /// Length in bytes.
    pub fn len(&self) -> u64 {
        self.file_len + self.tail.len() as u64
    }

    /// True if no byte was written.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn spill(&mut self) -> io::Result<&mut File> {
        let file = match self.file.take() {
            Some(file) => file,
            None => tempfile::tempfile()?,
        };
        let file = self.file.insert(file);
        file.write_all(&self.tail)?;
        self.file_len += self.tail.len() as u64;
        self.tail.clear();
        Ok(file)
    }

    /// Reads at an offset; returns 0 at the end.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        match &self.file {
            // A read at the border returns only the bytes of the file; callers read on at the next offset.
            Some(file) if offset < self.file_len => read_at(file, offset, buffer),
            _ => {
                let start = usize::try_from(offset - self.file_len).unwrap_or(usize::MAX).min(self.tail.len());
                (&self.tail[start..]).read(buffer)
            }
        }
    }

    /// Returns a reader that starts at `offset`.
    pub fn reader(&self, offset: u64) -> SpillReader<'_> {
        SpillReader { buffer: self, offset }
    }

    /// Copies the bytes from `from` to `to` (exclusive). A buffer that ends earlier is an `UnexpectedEof` error.
    pub fn copy(&self, from: u64, to: u64, out: &mut impl Write) -> io::Result<()> {
        let copied = io::copy(&mut self.reader(from).take(to - from), out)?;
        if copied == to - from { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

impl Write for SpillBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.tail.len() + bytes.len() <= MEMORY_LIMIT {
            self.tail.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        // Large writes bypass the tail: copying them there first would only cost time.
        let written = self.spill()?.write(bytes)?;
        self.file_len += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// See [`SpillBuffer::reader`].
#[derive(Debug)]
pub struct SpillReader<'a> {
    buffer: &'a SpillBuffer,
    offset: u64,
}

impl Read for SpillReader<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.buffer.read_at(self.offset, bytes)?;
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
        fn written_bytes_are_read_back_from_any_offset(
            blocks in prop::collection::vec((0_usize..3 * MEMORY_LIMIT / 2, any::<u8>()), 0..6), from in 0.0..1.0
        ) {
            let (mut buffer, mut all) = (SpillBuffer::default(), Vec::new());
            for (length, byte) in blocks {
                let block = vec![byte; length];
                buffer.write_all(&block).unwrap();
                all.extend(block);
                prop_assert!(buffer.tail.len() <= MEMORY_LIMIT);
            }
            prop_assert_eq!(buffer.len(), all.len() as u64);
            prop_assert_eq!(buffer.is_empty(), all.is_empty());
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an offset within the bytes")]
            let from = (from * all.len() as f64) as usize;
            let mut read = Vec::new();
            buffer.copy(from as u64, all.len() as u64, &mut read).unwrap();
            prop_assert!(read == all[from..]);
        }
    }
}
