//! An exclusive lock on a file, for one writer at a time. The system releases it when the process ends for any reason, so a
//! lock never outlives its owner, not even one in another PID namespace.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Seek, Write};
use std::thread;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};

/// Time between two attempts to lock a file.
const RETRY: Duration = Duration::from_millis(10);

/// A lock that is held until it is dropped. The lock file of a killed process does not block.
#[derive(Debug)]
pub struct FileLock {
    path: Utf8PathBuf,
    /// `None` where the file could not be locked.
    file: Option<File>,
    /// Whether only this lock can have the file, also where it could not be locked.
    is_name_unique: bool,
}

impl FileLock {
    /// Locks the file at `path`, which is created where it does not exist. Returns `None` at once where another process holds
    /// the lock.
    ///
    /// Some network file systems have no locks. There the lock protects nothing, because refusing to work would be worse than
    /// working unprotected.
    pub fn try_lock(path: &Utf8Path) -> io::Result<Option<Self>> {
        loop {
            #[expect(clippy::disallowed_methods, reason = "the content may be torn")]
            let file = OpenOptions::new().create(true).truncate(false).write(true).read(true).open(path)?;
            match try_lock(&file, path)? {
                LockAttempt::Locked => return Ok(Some(Self::shared(path, Some(file)))),
                LockAttempt::Busy => return Ok(None),
                LockAttempt::Failed => return Ok(Some(Self::shared(path, None))),
                LockAttempt::Removed => {}
            }
        }
    }

    /// Locks the file as [`FileLock::try_lock`] does, and waits for another process that holds the lock. Returns `None` where
    /// it still holds the lock at the end of the time.
    pub fn lock_within(path: &Utf8Path, time: Duration) -> io::Result<Option<Self>> {
        let start = Instant::now();
        loop {
            let lock = Self::try_lock(path)?;
            if lock.is_some() || start.elapsed() >= time {
                return Ok(lock);
            }
            thread::sleep(RETRY);
        }
    }

    /// Replaces the content of the file, which is for people and other processes. It may be torn.
    pub fn set_content(&self, content: &str) -> io::Result<()> {
        let Some(mut file) = self.file.as_ref() else { return Ok(()) };
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(content.as_bytes())
    }

    fn shared(path: &Utf8Path, file: Option<File>) -> Self {
        Self { path: path.to_owned(), file, is_name_unique: false }
    }

    /// Creates and locks a file with a name that no other process uses. Fails with `AlreadyExists` where the file exists, or
    /// where another process has locked or removed it, because it looked for leftovers at that moment.
    pub(crate) fn lock_new(path: &Utf8Path) -> io::Result<Self> {
        #[expect(clippy::disallowed_methods, reason = "the file has no content that could be torn")]
        let file = OpenOptions::new().create_new(true).write(true).read(true).open(path)?;
        Self::of_new(file, path).ok_or_else(|| io::ErrorKind::AlreadyExists.into())
    }

    fn of_new(file: File, path: &Utf8Path) -> Option<Self> {
        let file = match try_lock(&file, path) {
            Ok(LockAttempt::Locked) => Some(file),
            Ok(LockAttempt::Busy | LockAttempt::Removed) => return None,
            Ok(LockAttempt::Failed) | Err(_) => None,
        };
        Some(Self { path: path.to_owned(), file, is_name_unique: true })
    }

    /// False where the file could not be locked, so that another process may have this lock as well.
    pub(crate) fn is_exclusive(&self) -> bool {
        self.file.is_some()
    }
}

/// Locks a new file for as long as it stays open. Returns false if another process holds its lock or has removed it: that
/// process looked for leftovers before the lock was taken.
pub(crate) fn lock_new_file(file: &File, path: &Utf8Path) -> bool {
    // A file that cannot be locked is used without a lock, like every lock on a file system without locks.
    !matches!(try_lock(file, path), Ok(LockAttempt::Busy | LockAttempt::Removed))
}

/// Removes a file unless a living process holds its lock, or the file system has no locks. Returns whether it was removed.
pub(crate) fn remove_unless_locked(path: &Utf8Path) -> io::Result<bool> {
    #[expect(clippy::disallowed_methods, reason = "writes nothing; some systems lock only files open for writing")]
    let file = OpenOptions::new().write(true).read(true).open(path)?;
    let is_dead = matches!(try_lock(&file, path)?, LockAttempt::Locked);
    if is_dead {
        // While the lock is held, so that no process uses the file as its own.
        std::fs::remove_file(path)?;
    }
    Ok(is_dead)
}

/// The outcome of an attempt to lock a file.
pub(crate) enum LockAttempt {
    Locked,
    /// Another process holds the lock.
    Busy,
    /// The file was renamed or removed before it was locked. A lock on it excludes no other process.
    Removed,
    /// The file system has no locks, or none at this time: network file systems report this with several errors.
    Failed,
}

/// Tries to lock an open file.
pub(crate) fn try_lock(file: &File, path: &Utf8Path) -> io::Result<LockAttempt> {
    match file.try_lock() {
        Ok(()) if is_at(file, path)? => Ok(LockAttempt::Locked),
        Ok(()) => Ok(LockAttempt::Removed),
        Err(TryLockError::WouldBlock) => Ok(LockAttempt::Busy),
        Err(TryLockError::Error(_)) => Ok(LockAttempt::Failed),
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        if self.file.is_some() || self.is_name_unique {
            // Removed while the lock is held, so that the file is surely ours. A file that remains does not block.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// True where the path names the open file.
#[cfg(unix)]
pub(crate) fn is_at(file: &File, path: &Utf8Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;

    let opened = file.metadata()?;
    match path.metadata() {
        Ok(named) => Ok((opened.dev(), opened.ino()) == (named.dev(), named.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(not(unix))]
pub(crate) fn is_at(_file: &File, path: &Utf8Path) -> io::Result<bool> {
    path.try_exists()
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;

    /// A file that exists and cannot be locked, like a file on a network file system without locks.
    fn without_lock(path: &Utf8Path) -> File {
        use rustix::fs::{Mode, OFlags};

        crate::write::write(path, b"", crate::write::Durability::Cached).unwrap();
        let file =
            File::from(rustix::fs::open(path.as_std_path(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap());
        assert!(
            matches!(file.try_lock(), Err(TryLockError::Error(error)) if error.kind() != io::ErrorKind::Unsupported)
        );
        file
    }

    #[test]
    fn a_file_that_cannot_be_locked_is_used_without_a_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("lock");
        assert!(matches!(try_lock(&without_lock(&path), &path), Ok(LockAttempt::Failed)));
    }

    #[test]
    fn a_file_is_locked_once_its_holder_drops_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("lock");
        let held = FileLock::try_lock(&path).unwrap().unwrap();
        assert!(FileLock::lock_within(&path, Duration::from_millis(30)).unwrap().is_none());
        let other = path.clone();
        let waiting = thread::spawn(move || FileLock::lock_within(&other, Duration::from_mins(1)).unwrap());
        drop(held);
        assert!(waiting.join().unwrap().is_some());
    }

    #[test]
    fn a_unique_file_is_removed_at_the_end_even_if_it_could_not_be_locked() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("lock");
        let lock = FileLock::of_new(without_lock(&path), &path).unwrap();
        assert!(!lock.is_exclusive() && path.exists());
        drop(lock);
        assert!(!path.exists());
    }
}
