//! Reads the lines of a log one at a time.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write as _};

use camino::{Utf8Path, Utf8PathBuf};

use super::{LineWriter, LogError, MAX_LINE_BYTES};
use crate::file_lock::is_at;
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

/// The part of a file between two offsets.
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
        // Not `read`: a writer may share the open file, and with it the position of the file.
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
        // One byte more than the limit, for the newline of a line of maximum length.
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
        // What was read ahead belongs to another place.
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

/// Bytes that are copied at once from one log to another.
const COPIED_AT_ONCE: usize = 64 * 1024;

/// Whether a locked file is as its writer left it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogState {
    /// The file has the lines that were written.
    Intact,
    /// The file was removed, renamed or replaced. Its lines can be read until it is closed.
    Removed,
    /// Another program has shortened or extended the file.
    Resized,
}

impl LineWriter {
    /// Returns whether the file is as this writer left it. If the folder cannot be searched, the file counts as present.
    pub fn state(&self) -> LogState {
        use io::ErrorKind::{NotADirectory, NotFound};

        match is_at(&self.file, &self.path) {
            Ok(false) => LogState::Removed,
            // The file went with its folder.
            Err(error) if matches!(error.kind(), NotFound | NotADirectory) => LogState::Removed,
            _ if self.file.metadata().is_ok_and(|metadata| metadata.len() != self.length) => LogState::Resized,
            _ => LogState::Intact,
        }
    }

    /// Continues at the end of a file that another program has resized. The next line does not continue a part of another one.
    /// Returns how many of the bytes that were written are left.
    pub fn accept_size(&mut self) -> Result<u64, LogError> {
        let found = self.file.metadata().map_err(LogError::read(&self.path))?.len();
        if found > 0
            // Ends the part of a line that the other program may have left.
            && let Err(error) = self.file.write_all(b"\n")
        {
            return Err(LogError::write(&self.path)(error));
        }
        let left = found.min(self.length);
        self.length = found + u64::from(found > 0);
        Ok(left)
    }

    /// Appends the lines from an offset on to another log. After an error the other log has the same lines as before.
    pub fn copy_to(&self, to: &mut LineWriter, mut offset: u64) -> Result<(), LogError> {
        let start = to.length;
        let mut buffer = vec![0; COPIED_AT_ONCE];
        while offset < self.length {
            let read = read_at(&self.file, &mut buffer, offset).map_err(LogError::read(&self.path))?;
            // Another program has shortened the file.
            if read == 0 {
                break;
            }
            if let Err(error) = to.file.write_all(&buffer[..read]) {
                // The other log gets all of the lines or none.
                to.file.set_len(start).map_err(LogError::write(&to.path))?;
                to.length = start;
                return Err(LogError::write(&to.path)(error));
            }
            to.length += read as u64;
            offset += read as u64;
        }
        Ok(())
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use camino::Utf8Path;

    use super::*;
    use crate::line_log::{LineLog, LockOptions};
    use crate::write::{Durability, write};

    fn log() -> (tempfile::TempDir, LineLog, LineWriter) {
        let folder = tempfile::tempdir().unwrap();
        let log = LineLog::new(Utf8Path::from_path(folder.path()).unwrap().join("log.jsonl"));
        let mut writer = log.lock(&LockOptions::default(), |_| false).unwrap();
        writer.append_unsynced(b"1\n22\n").unwrap();
        assert_eq!(writer.state(), LogState::Intact);
        (folder, log, writer)
    }

    fn lines(writer: &LineWriter, offset: u64) -> Vec<String> {
        let mut reader = writer.read_from(offset).unwrap();
        reader.set_end(writer.length());
        std::iter::from_fn(|| reader.next_line().unwrap()).map(|it| String::from_utf8(it.bytes).unwrap()).collect()
    }

    #[test]
    fn the_lines_of_a_file_that_was_removed_can_be_copied_to_a_new_one() {
        let (_folder, log, writer) = log();
        std::fs::remove_file(log.path()).unwrap();
        assert_eq!(writer.state(), LogState::Removed);
        let mut new = log.lock(&LockOptions::default(), |_| false).unwrap();
        assert_eq!(writer.state(), LogState::Removed, "the path names another file");
        writer.copy_to(&mut new, 2).unwrap();
        new.append_unsynced(b"333\n").unwrap();
        writer.remove().unwrap();
        assert_eq!((new.state(), lines(&new, 0)), (LogState::Intact, vec!["22".to_owned(), "333".to_owned()]));
    }

    #[test]
    fn lines_after_a_change_of_the_size_are_lines_of_their_own() {
        for (text, left, expected) in [("", 0, vec!["4"]), ("1\n2", 3, vec!["1", "2", "4"])] {
            let (_folder, log, mut writer) = log();
            let file = writer.file().try_clone().unwrap();
            file.set_len(text.len() as u64).unwrap();
            assert_eq!((writer.state(), writer.accept_size().unwrap()), (LogState::Resized, left));
            writer.append_unsynced(b"4\n").unwrap();
            assert_eq!(
                (writer.state(), lines(&writer, 0)),
                (LogState::Intact, expected.iter().map(ToString::to_string).collect())
            );
            drop(writer);
            write(log.path(), b"", Durability::Cached).unwrap();
        }
    }

    #[test]
    fn a_reader_sees_nothing_after_its_end() {
        let (_folder, _log, mut writer) = log();
        let mut reader = writer.read_from(0).unwrap();
        reader.set_end(2);
        assert_eq!(reader.next_line().unwrap().unwrap().bytes, b"1");
        assert_eq!(reader.next_line().unwrap(), None);
        writer.append_unsynced(b"333\n").unwrap();
        reader.set_end(writer.length());
        assert_eq!(reader.next_line().unwrap().unwrap().bytes, b"22");
    }
}
