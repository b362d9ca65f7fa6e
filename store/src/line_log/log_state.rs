//! What a writer does about a file that another program has removed or resized.

use std::io::{self, Write as _};

use super::reader::read_at;
use super::{LineWriter, LogError};
use crate::file_lock::is_at;

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
            if read == 0 {
                break;
            }
            if let Err(error) = to.file.write_all(&buffer[..read]) {
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

    use super::super::{LineLog, LockOptions};
    use super::*;
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
