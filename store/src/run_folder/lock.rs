//! One writer at a time: the lock of a run folder. The system releases it when the process ends for any reason.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;

use camino::{Utf8Path, Utf8PathBuf};

/// The lock file in a run folder. It belongs to no document and is removed when the writer is done.
pub const LOCK_FILE: &str = ".lock";

/// A run folder that could not be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds the lock.
    #[error("another runner is writing to `{0}`")]
    Held(Utf8PathBuf),
    /// The lock file could not be opened or locked.
    #[error("failed to lock `{path}`")]
    Io {
        /// The lock file.
        path: Utf8PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// The lock of a run folder, held until it is dropped. The lock file of a killed process does not block: the system has
/// released its lock.
#[derive(Debug)]
pub struct RunLock {
    path: Utf8PathBuf,
    file: Option<File>,
}

impl RunLock {
    /// Locks a folder, or returns [`LockError::Held`] at once.
    ///
    /// Some network file systems have no locks. There the folder is used without one, because refusing to run would be
    /// worse than running unprotected.
    pub fn acquire(folder: &Utf8Path) -> Result<Self, LockError> {
        let path = folder.join(LOCK_FILE);
        let failed = |source| LockError::Io { path: path.clone(), source };
        loop {
            #[expect(clippy::disallowed_methods, reason = "the file has no content that could be torn")]
            let file =
                OpenOptions::new().create(true).truncate(false).write(true).read(true).open(&path).map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(LockError::Held(folder.to_owned())),
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                    return Ok(Self { path, file: None });
                }
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
            // The previous holder may have removed the file between our open and our lock. A lock on a removed file
            // excludes no other process, so try again.
            if is_at(&file, &path).map_err(failed)? {
                return Ok(Self { path, file: Some(file) });
            }
        }
    }
}

impl Drop for RunLock {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_writer_and_no_lock_file_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        let first = RunLock::acquire(folder).unwrap();
        assert!(matches!(RunLock::acquire(folder), Err(LockError::Held(_))));
        drop(first);
        assert!(!folder.join(LOCK_FILE).exists());
        RunLock::acquire(folder).unwrap();
    }

    #[test]
    fn the_lock_file_of_a_killed_process_does_not_block() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        crate::write::write(&folder.join(LOCK_FILE), b"", crate::write::Durability::Cached).unwrap();
        RunLock::acquire(folder).unwrap();
    }
}
