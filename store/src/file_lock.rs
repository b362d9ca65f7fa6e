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
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                    return Ok(Some(Self { path: path.to_owned(), file: None }));
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
            // The previous holder may have removed the file between our open and our lock. A lock on a removed file
            // excludes no other process, so try again.
            if is_at(&file, path)? {
                return Ok(Some(Self { path: path.to_owned(), file: Some(file) }));
            }
        }
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
