//! An exclusive lock on a file, for one writer at a time. The system releases it when the process ends for any reason, so a
//! lock never outlives its owner, not even one in another PID namespace.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;

use camino::{Utf8Path, Utf8PathBuf};

/// A lock that is held until it is dropped. The lock file of a killed process does not block.
#[derive(Debug)]
pub(crate) struct FileLock {
    path: Utf8PathBuf,
    file: Option<File>,
}

impl FileLock {
    /// Locks the file at `path`, which is created where it does not exist. Returns `None` at once where another process holds
    /// the lock.
    ///
    /// Some network file systems have no locks. There the lock protects nothing, because refusing to work would be worse than
    /// working unprotected.
    pub(crate) fn try_acquire(path: &Utf8Path) -> io::Result<Option<Self>> {
        loop {
            #[expect(clippy::disallowed_methods, reason = "the file has no content that could be torn")]
            let file = OpenOptions::new().create(true).truncate(false).write(true).read(true).open(path)?;
            match lock(&file, path)? {
                Attempt::Locked => return Ok(Some(Self { path: path.to_owned(), file: Some(file) })),
                Attempt::Held => return Ok(None),
                Attempt::Unsupported => return Ok(Some(Self { path: path.to_owned(), file: None })),
                Attempt::Removed => {}
            }
        }
    }

    /// False on a file system without locks, where another process may have this lock as well.
    pub(crate) fn is_exclusive(&self) -> bool {
        self.file.is_some()
    }
}

/// Locks a new file for as long as it stays open. Returns false if another process holds its lock or has removed it: that process
/// looked for leftovers before the lock was taken.
///
/// A file that cannot be locked is used without a lock, like every lock on a file system without locks.
pub(crate) fn lock_new(file: &File, path: &Utf8Path) -> bool {
    !matches!(lock(file, path), Ok(Attempt::Held | Attempt::Removed))
}

/// Removes a file unless a living process holds its lock, or the file system has no locks. Returns whether it was removed.
pub(crate) fn remove_unless_locked(path: &Utf8Path) -> io::Result<bool> {
    #[expect(clippy::disallowed_methods, reason = "writes nothing; some systems lock only files open for writing")]
    let file = OpenOptions::new().write(true).read(true).open(path)?;
    let is_dead = matches!(lock(&file, path)?, Attempt::Locked);
    if is_dead {
        // While the lock is held, so that no process uses the file as its own.
        std::fs::remove_file(path)?;
    }
    Ok(is_dead)
}

/// The outcome of an attempt to lock a file.
enum Attempt {
    Locked,
    /// Another process holds the lock.
    Held,
    /// The file was renamed or removed before it was locked. A lock on it excludes no other process.
    Removed,
    /// The file system has no locks.
    Unsupported,
}

fn lock(file: &File, path: &Utf8Path) -> io::Result<Attempt> {
    match file.try_lock() {
        Ok(()) if is_at(file, path)? => Ok(Attempt::Locked),
        Ok(()) => Ok(Attempt::Removed),
        Err(TryLockError::WouldBlock) => Ok(Attempt::Held),
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(Attempt::Unsupported),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        if self.file.is_some() {
            // Removed while the lock is held, so that the file is surely ours. A file that remains does not block.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// True where the path names the open file.
#[cfg(unix)]
fn is_at(file: &File, path: &Utf8Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;

    let opened = file.metadata()?;
    match path.metadata() {
        Ok(named) => Ok((opened.dev(), opened.ino()) == (named.dev(), named.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(not(unix))]
fn is_at(_file: &File, path: &Utf8Path) -> io::Result<bool> {
    path.try_exists()
}
