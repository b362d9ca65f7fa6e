//! Reads the lines of a log one at a time.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use camino::{Utf8Path, Utf8PathBuf};

use super::{LogError, MAX_LINE_BYTES};
use crate::read_file;

/// A whole line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The offset of its first byte.
    pub offset: u64,
    /// Its bytes, without the newline.
    pub bytes: Vec<u8>,
}

/// Bytes that are read at once.
const BUFFER: usize = 64 * 1024;

/// An open log. Lines that are appended while it is read may or may not be seen.
#[derive(Debug)]
pub struct LineReader {
    path: Utf8PathBuf,
    section: BufReader<Section>,
    offset: u64,
    torn: u64,
}

/// The part of a file between two offsets. It has a position of its own, since a writer may share the file.
#[derive(Debug)]
struct Section {
    file: File,
    position: u64,
    end: u64,
}

impl Read for Section {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.position)).unwrap_or(usize::MAX);
        let length = buffer.len().min(left);
        let read = read_at(&self.file, &mut buffer[..length], self.position)?;
        self.position += read as u64;
        Ok(read)
    }
}

#[cfg(unix)]
pub(super) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(windows)]
pub(super) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}

impl LineReader {
    pub(super) fn open(path: &Utf8Path, offset: u64) -> Result<Option<Self>, LogError> {
        match read_file::open(path) {
            Ok((file, _)) => Ok(Some(Self::new(path, file, offset))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(LogError::read(path)(error)),
        }
    }

    pub(super) fn new(path: &Utf8Path, file: File, offset: u64) -> Self {
        let section = BufReader::with_capacity(BUFFER, Section { file, position: offset, end: u64::MAX });
        Self { path: path.to_owned(), section, offset, torn: 0 }
    }

    /// Stops before an offset, which is the end of a line. Lines that were read ahead stay, so the end never moves back.
    pub fn set_end(&mut self, end: u64) {
        self.section.get_mut().end = end;
    }

    /// Reads the next whole line. Returns `None` at the end, and before a torn last line.
    pub fn next_line(&mut self) -> Result<Option<Line>, LogError> {
        let mut bytes = Vec::new();
        let mut limited = (&mut self.section).take(MAX_LINE_BYTES + 1);
        let read = limited.read_until(b'\n', &mut bytes).map_err(LogError::read(&self.path))? as u64;
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
            let line = Line { offset: self.offset, bytes };
            self.offset += read;
            return Ok(Some(line));
        }
        if read > MAX_LINE_BYTES {
            return Err(LogError::TooLong { path: self.path.clone(), offset: self.offset });
        }
        self.torn = read;
        Ok(None)
    }

    /// Reads the line at an offset that is the start of a line.
    pub fn line_at(&mut self, offset: u64) -> Result<Option<Line>, LogError> {
        self.section.consume(self.section.buffer().len());
        self.section.get_mut().position = offset;
        self.offset = offset;
        self.next_line()
    }

    /// Returns the offset after the last whole line that was read.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the length of the torn last line in bytes, after [`LineReader::next_line`] has returned `None`.
    pub fn torn_bytes(&self) -> u64 {
        self.torn
    }

    /// Returns the open file.
    pub fn file(&self) -> &File {
        &self.section.get_ref().file
    }
}
