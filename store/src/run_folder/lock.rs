//! One writer at a time: the lock of a run folder. The system releases it when the process ends for any reason.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};

use crate::file_lock::FileLock;

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
    _lock: FileLock,
}

impl RunLock {
    /// Locks a folder, or returns [`LockError::Held`] at once. A file system without locks is used without one.
    pub fn acquire(folder: &Utf8Path) -> Result<Self, LockError> {
        let path = folder.join(LOCK_FILE);
        match FileLock::try_acquire(&path) {
            Ok(Some(lock)) => Ok(Self { _lock: lock }),
            Ok(None) => Err(LockError::Held(folder.to_owned())),
            Err(source) => Err(LockError::Io { path, source }),
        }
    }
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
