//! Appends lines to a log, one process at a time, after a repair of a torn last line.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};

use super::{LineReader, LogError, LogState, MAX_LINE_BYTES};
use crate::file_lock::{LockAttempt, try_lock};
use crate::read_file;
use crate::write::{AtomicFile, Durability, parent_of, sync_folder};

/// First and longest pause between two attempts to lock.
const PAUSES: [Duration; 2] = [Duration::from_micros(100), Duration::from_millis(10)];

/// How a log is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockOptions {
    /// The longest time to wait for other writers.
    pub wait: Duration,
}

impl Default for LockOptions {
    fn default() -> Self {
        Self { wait: Duration::from_secs(30) }
    }
}

/// A locked log. Dropping it releases the lock; the system does so if the process dies.
#[derive(Debug)]
pub struct LineWriter {
    pub(super) path: Utf8PathBuf,
    pub(super) file: File,
    pub(super) length: u64,
    repair: Option<Repair>,
}

impl LineWriter {
    pub(super) fn lock(
        path: &Utf8Path,
        options: &LockOptions,
        is_whole: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Self, LogError> {
        Self::lock_with(path, options, is_whole, &try_lock)
    }

    pub(super) fn take_over(path: &Utf8Path, is_whole: &dyn Fn(&[u8]) -> bool) -> Result<Option<Self>, LogError> {
        // Checked first, because the lock below would create the file.
        if !path.is_file() {
            return Ok(None);
        }
        match Self::lock(path, &LockOptions { wait: Duration::ZERO }, is_whole) {
            Ok(writer) => Ok(Some(writer)),
            Err(LogError::Locked { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Locks with a function that tries to lock an open file.
    fn lock_with(
        path: &Utf8Path,
        options: &LockOptions,
        is_whole: &dyn Fn(&[u8]) -> bool,
        lock: &dyn Fn(&File, &Utf8Path) -> io::Result<LockAttempt>,
    ) -> Result<Self, LogError> {
        let started = Instant::now();
        let mut pause = PAUSES[0];
        loop {
            let mut file = open(path).map_err(LogError::write(path))?;
            match lock(&file, path).map_err(LogError::write(path))? {
                // Two writers without a lock would mix their lines.
                LockAttempt::Failed => return Err(LogError::NoLocks { path: path.to_owned() }),
                LockAttempt::Locked => {
                    let repair = repair(path, &mut file, is_whole)?;
                    let length = file.metadata().map_err(LogError::read(path))?.len();
                    if length == 0 {
                        // The name of a new file must be as durable as its lines.
                        sync_folder(parent_of(path)).map_err(LogError::write(path))?;
                    }
                    return Ok(Self { path: path.to_owned(), file, length, repair });
                }
                // Another process has replaced the file; the new one is locked next.
                LockAttempt::Removed => {}
                LockAttempt::Busy if started.elapsed() >= options.wait => {
                    return Err(LogError::Locked { path: path.to_owned(), waited: options.wait });
                }
                LockAttempt::Busy => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(PAUSES[1]);
                }
            }
        }
    }

    /// Returns what was done about a torn last line when the log was locked.
    pub fn repair(&self) -> Option<&Repair> {
        self.repair.as_ref()
    }

    /// Returns the length of the log in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns the open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Opens the file for reading from an offset, which is the start of a line, also if it was removed.
    pub fn read_from(&self, offset: u64) -> Result<LineReader, LogError> {
        let file = self.file.try_clone().map_err(LogError::read(&self.path))?;
        Ok(LineReader::new(&self.path, file, offset))
    }

    /// Appends whole lines, each with its newline, and syncs them. Returns the offset of the first one. After an error the log
    /// has the same lines as before, unless the disk fails again.
    pub fn append(&mut self, lines: &[u8]) -> Result<u64, LogError> {
        let longest = lines.split(|byte| *byte == b'\n').map(|line| line.len() as u64).max().unwrap_or(0);
        if longest > MAX_LINE_BYTES {
            return Err(LogError::NewLineTooLong { path: self.path.clone(), bytes: longest });
        }
        let offset = self.length;
        // One call, so that a crash tears at most the last of the lines that reach the disk.
        let written = self.file.write_all(lines).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // A line that is perhaps not durable must not be read as if it were.
            let _ = self.file.set_len(offset).and_then(|()| self.file.sync_data());
            return Err(LogError::write(&self.path)(error));
        }
        self.length += lines.len() as u64;
        Ok(offset)
    }

    /// Appends whole lines, each with its newline, with one write and without a sync: they survive the end of the process, and not
    /// a power failure. After an error the log has the same lines as before.
    pub fn append_unsynced(&mut self, lines: &[u8]) -> Result<(), LogError> {
        let longest = lines.len() as u64;
        if longest > MAX_LINE_BYTES {
            return Err(LogError::NewLineTooLong { path: self.path.clone(), bytes: longest });
        }
        if let Err(error) = self.file.write_all(lines) {
            // A disk that is full takes a part of a line. The next line must not continue it.
            self.file.set_len(self.length).map_err(LogError::write(&self.path))?;
            return Err(LogError::write(&self.path)(error));
        }
        self.length += lines.len() as u64;
        Ok(())
    }

    /// Removes all lines. The log stays locked.
    pub fn clear(&mut self) -> Result<(), LogError> {
        self.file.set_len(0).map_err(LogError::write(&self.path))?;
        self.length = 0;
        Ok(())
    }

    /// Removes the file while it is locked, so that no other writer adds lines to it. A file that took its place stays.
    pub fn remove(self) -> Result<(), LogError> {
        if self.state() == LogState::Removed {
            return Ok(());
        }
        std::fs::remove_file(&self.path).map_err(LogError::write(&self.path))
    }

    /// Replaces the content of the log by the lines that `fill` writes. The file mode stays. Keeps the old content in the file `archive`, which must not exist.
    pub fn replace(
        self,
        archive: &Utf8Path,
        fill: impl FnOnce(&mut AtomicFile) -> Result<(), LogError>,
    ) -> Result<(), LogError> {
        let write_error = |error: crate::write::WriteError| LogError::Write { path: error.path, source: error.source };
        let mut new = AtomicFile::create(&self.path).map_err(write_error)?;
        let mode = self.file.metadata().map_err(LogError::read(&self.path))?.permissions();
        // Before the first line is written, which others may not be allowed to read.
        new.set_permissions(mode).map_err(write_error)?;
        fill(&mut new)?;
        std::fs::hard_link(&self.path, archive).map_err(LogError::write(archive))?;
        // Other processes that wait for the lock of the old file see that it was replaced.
        new.commit(Durability::Synced).map_err(write_error)
    }
}

/// Returns true if a living process holds the lock of a file.
pub(super) fn is_locked(path: &Utf8Path) -> bool {
    // A shared lock, so that several processes can ask at the same time.
    let Ok((file, _)) = read_file::open(path) else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

fn open(path: &Utf8Path) -> io::Result<File> {
    #[expect(clippy::disallowed_methods, reason = "appends; a torn end is repaired")]
    let opened = OpenOptions::new().read(true).append(true).create(true).open(path);
    let file = opened?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
}

/// Bytes that are read at once while searching for the start of the last line.
const CHUNK: u64 = 64 * 1024;

/// The largest number of files with torn lines next to a log.
const MAX_TORN_FILES: u32 = 1000;

/// What was done about a last line without a newline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repair {
    /// The line was complete. Its newline was added.
    Completed {
        /// The length of the line in bytes.
        bytes: u64,
    },
    /// The line was incomplete. It was moved to a file of its own.
    Moved {
        /// The length of the line in bytes.
        bytes: u64,
        /// The file.
        to: Utf8PathBuf,
    },
}

/// Repairs the last line of a locked log. Returns `None` if it is whole.
pub(super) fn repair(
    path: &Utf8Path,
    file: &mut File,
    is_whole: &dyn Fn(&[u8]) -> bool,
) -> Result<Option<Repair>, LogError> {
    let (torn, length) = torn_line(file).map_err(LogError::read(path))?;
    if torn.is_empty() {
        return Ok(None);
    }
    let bytes = torn.len() as u64;
    if bytes > MAX_LINE_BYTES {
        return Err(LogError::TooLong { path: path.to_owned(), offset: length - bytes });
    }
    if is_whole(&torn) {
        file.write_all(b"\n").and_then(|()| file.sync_data()).map_err(LogError::write(path))?;
        return Ok(Some(Repair::Completed { bytes }));
    }
    // Saved before it is cut off, so that no crash loses it.
    let to = save(path, &torn)?;
    file.set_len(length - bytes).and_then(|()| file.sync_data()).map_err(LogError::write(path))?;
    Ok(Some(Repair::Moved { bytes, to }))
}

fn save(path: &Utf8Path, torn: &[u8]) -> Result<Utf8PathBuf, LogError> {
    let write_error = |error: crate::write::WriteError| LogError::Write { path: error.path, source: error.source };
    let mut copy = AtomicFile::create(path).map_err(write_error)?;
    copy.write_all(torn).map_err(LogError::write(path))?;
    let names = (1..=MAX_TORN_FILES).map(|number| Utf8PathBuf::from(format!("{path}.torn-{number}")));
    let saved = copy.commit_new(names, Durability::Synced).map_err(write_error)?;
    saved.ok_or_else(|| {
        LogError::write(path)(io::Error::other(format!(
            "{MAX_TORN_FILES} torn lines lie next to the file; remove them"
        )))
    })
}

/// Returns the bytes after the last newline, and the length of the file. Reads at most [`MAX_LINE_BYTES`] and one chunk.
fn torn_line(file: &mut File) -> io::Result<(Vec<u8>, u64)> {
    let length = file.metadata()?.len();
    let mut start = length;
    let mut tail = Vec::new();
    while start > 0 && length - start <= MAX_LINE_BYTES {
        let from = start.saturating_sub(CHUNK);
        file.seek(SeekFrom::Start(from))?;
        let mut chunk = Vec::new();
        file.take(start - from).read_to_end(&mut chunk)?;
        if let Some(newline) = chunk.iter().rposition(|byte| *byte == b'\n') {
            chunk.drain(..=newline);
            chunk.append(&mut tail);
            return Ok((chunk, length));
        }
        chunk.append(&mut tail);
        tail = chunk;
        start = from;
    }
    Ok((tail, length))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::super::{Line, LineLog};
    use super::*;
    use crate::write;

    fn log() -> (tempfile::TempDir, LineLog) {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("log.jsonl");
        (folder, LineLog::new(path))
    }

    fn lines(log: &LineLog) -> Vec<String> {
        let mut reader = log.read_from(0).unwrap().unwrap();
        let mut lines = Vec::new();
        while let Some(line) = reader.next_line().unwrap() {
            lines.push(String::from_utf8(line.bytes).unwrap());
        }
        lines
    }

    fn is_json(bytes: &[u8]) -> bool {
        serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
    }

    #[test]
    fn a_torn_last_line_is_moved_away_and_a_whole_one_gets_its_newline() {
        for cut in 1..=12 {
            let (_folder, log) = log();
            let text = "{\"a\":1}\n{\"b\":222}\n";
            // The cut removes the newline and more bytes of the last line.
            write::write(log.path(), &text.as_bytes()[..text.len() - cut], Durability::Cached).unwrap();
            let mut writer = log.lock(&LockOptions::default(), is_json).unwrap();
            let expected = match cut {
                1 => Some(Repair::Completed { bytes: 9 }),
                10 => None,
                11 => Some(Repair::Completed { bytes: 7 }),
                _ => {
                    let bytes = if cut < 10 { 10 - cut } else { 18 - cut } as u64;
                    Some(Repair::Moved { bytes, to: format!("{}.torn-1", log.path()).into() })
                }
            };
            assert_eq!(writer.repair(), expected.as_ref(), "{cut}");
            writer.append(b"{\"c\":3}\n").unwrap();
            let kept: &[&str] = match cut {
                1 => &["{\"a\":1}", "{\"b\":222}", "{\"c\":3}"],
                2..=11 => &["{\"a\":1}", "{\"c\":3}"],
                _ => &["{\"c\":3}"],
            };
            assert_eq!(lines(&log), kept, "{cut}");
        }
    }

    #[test]
    fn readers_skip_a_torn_line_and_change_nothing() {
        let (_folder, log) = log();
        write::write(log.path(), b"1\n22", Durability::Cached).unwrap();
        let mut reader = log.read_from(0).unwrap().unwrap();
        assert_eq!(reader.next_line().unwrap(), Some(Line { offset: 0, bytes: b"1".to_vec() }));
        assert_eq!((reader.next_line().unwrap(), reader.offset(), reader.torn_bytes()), (None, 2, 2));
        assert_eq!(std::fs::read(log.path()).unwrap(), b"1\n22");
    }

    #[test]
    fn one_writer_at_a_time_appends_and_none_loses_a_line() {
        let (_folder, log) = log();
        thread::scope(|scope| {
            for thread in 0..4 {
                let log = &log;
                scope.spawn(move || {
                    for number in 0..25 {
                        let mut writer = log.lock(&LockOptions::default(), is_json).unwrap();
                        writer.append(format!("[{thread},{number}]\n").as_bytes()).unwrap();
                    }
                });
            }
        });
        let mut lines = lines(&log);
        lines.sort();
        lines.dedup();
        assert_eq!(lines.len(), 100);
    }

    #[test]
    fn a_writer_that_waits_too_long_fails() {
        let (_folder, log) = log();
        let _held = log.lock(&LockOptions::default(), is_json).unwrap();
        let error = log.lock(&LockOptions { wait: Duration::ZERO }, is_json).unwrap_err();
        assert!(matches!(error, LogError::Locked { .. }), "{error}");
    }

    #[test]
    fn a_writer_that_waited_continues_in_the_file_that_replaced_the_old_one() {
        let (folder, log) = log();
        let archive = Utf8Path::from_path(folder.path()).unwrap().join("old");
        let mut writer = log.lock(&LockOptions::default(), is_json).unwrap();
        writer.append(b"1\n2\n").unwrap();
        thread::scope(|scope| {
            let thread = scope.spawn(|| log.lock(&LockOptions::default(), is_json).unwrap().append(b"3\n").unwrap());
            writer.replace(&archive, |file| file.write_all(b"2\n").map_err(LogError::write(log.path()))).unwrap();
            thread.join().unwrap();
        });
        assert_eq!(lines(&log), ["2", "3"]);
        assert_eq!(std::fs::read(archive).unwrap(), b"1\n2\n");
    }

    #[test]
    fn a_file_that_cannot_be_locked_is_not_written() {
        let (_folder, log) = log();
        write::write(log.path(), b"1\n2", Durability::Cached).unwrap();
        let locked =
            LineWriter::lock_with(log.path(), &LockOptions::default(), &is_json, &|_, _| Ok(LockAttempt::Failed));
        let error = locked.unwrap_err();
        assert!(matches!(error, LogError::NoLocks { .. }), "{error}");
        assert_eq!(std::fs::read(log.path()).unwrap(), b"1\n2");
    }

    #[cfg(unix)]
    #[test]
    fn a_replaced_log_keeps_its_mode() {
        use std::os::unix::fs::PermissionsExt as _;

        for mode in [0o600, 0o640, 0o666] {
            let (folder, log) = log();
            let archive = Utf8Path::from_path(folder.path()).unwrap().join("old");
            log.lock(&LockOptions::default(), is_json).unwrap().append(b"1\n").unwrap();
            std::fs::set_permissions(log.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            let writer = log.lock(&LockOptions::default(), is_json).unwrap();
            writer.replace(&archive, |file| file.write_all(b"2\n").map_err(LogError::write(log.path()))).unwrap();
            assert_eq!(log.path().metadata().unwrap().permissions().mode() & 0o777, mode);
        }
    }

    #[test]
    fn a_line_beyond_the_limit_is_refused_and_the_log_is_unchanged() {
        let (_folder, log) = log();
        let mut writer = log.lock(&LockOptions::default(), is_json).unwrap();
        let mut oversized = vec![b'x'; usize::try_from(MAX_LINE_BYTES).unwrap() + 1];
        let error = writer.append(&oversized).unwrap_err();
        assert!(matches!(error, LogError::NewLineTooLong { bytes, .. } if bytes == MAX_LINE_BYTES + 1), "{error}");
        assert_eq!(writer.length(), 0);
        drop(writer);
        oversized.push(b'\n');
        write::write(log.path(), &oversized, Durability::Cached).unwrap();
        let error = log.read_from(0).unwrap().unwrap().next_line().unwrap_err();
        assert!(matches!(error, LogError::TooLong { offset: 0, .. }), "{error}");
    }

    #[test]
    fn a_log_is_taken_over_after_its_owner_and_not_before() {
        let (_folder, log) = log();
        assert!(log.take_over(is_json).unwrap().is_none() && !log.path().exists(), "there is no file");
        let mut owner = log.lock(&LockOptions::default(), is_json).unwrap();
        owner.append_unsynced(b"1\n").unwrap();
        owner.append_unsynced(b"2\n").unwrap();
        assert!(log.take_over(is_json).unwrap().is_none() && log.is_locked(), "the owner lives");
        drop(owner);
        assert!(!log.is_locked());
        let mut heir = log.take_over(is_json).unwrap().unwrap();
        assert_eq!((lines(&log), heir.length()), (vec!["1".to_owned(), "2".to_owned()], 4));
        heir.clear().unwrap();
        heir.append_unsynced(b"3\n").unwrap();
        assert_eq!((lines(&log), heir.length()), (vec!["3".to_owned()], 2));
        heir.remove().unwrap();
        assert!(!log.path().exists());
    }
}
