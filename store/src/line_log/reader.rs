//! Reads the lines of a log one at a time.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Seek as _, SeekFrom};

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

/// An open log. Lines that are appended while it is read may or may not be seen.
#[derive(Debug)]
pub struct LineReader {
    path: Utf8PathBuf,
    file: BufReader<File>,
    offset: u64,
    torn: u64,
}

impl LineReader {
    pub(super) fn open(path: &Utf8Path, offset: u64) -> Result<Option<Self>, LogError> {
        let mut file = match read_file::open(path) {
            Ok((file, _)) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(LogError::read(path)(error)),
        };
        file.seek(SeekFrom::Start(offset)).map_err(LogError::read(path))?;
        Ok(Some(Self { path: path.to_owned(), file: BufReader::with_capacity(64 * 1024, file), offset, torn: 0 }))
    }

    /// Reads the next whole line. Returns `None` at the end, and before a torn last line.
    pub fn next_line(&mut self) -> Result<Option<Line>, LogError> {
        let mut bytes = Vec::new();
        let mut limited = (&mut self.file).take(MAX_LINE_BYTES + 1);
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
        self.file.seek(SeekFrom::Start(offset)).map_err(LogError::read(&self.path))?;
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
        self.file.get_ref()
    }
}
