//! One writer at a time: a run folder is kept for a process by a lock that ends with the process, however it ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;

use camino::{Utf8Path, Utf8PathBuf};

/// The lock's file, within a run folder. It belongs to no document, and is gone when the writer is done.
pub const LOCK_FILE: &str = ".lock";

/// Why a run folder could not be kept for this process.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process writes there.
    #[error("another runner is at work in `{0}`")]
    Held(Utf8PathBuf),
    /// The system said no.
    #[error("failed to lock `{path}`")]
    Io {
        /// The lock's file.
        path: Utf8PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A run folder, kept for this process until dropped. The file of a process that was killed is no obstacle: the system
/// has let go of its lock.
#[derive(Debug)]
pub struct RunLock {
    path: Utf8PathBuf,
    file: Option<File>,
}

impl RunLock {
    /// Keeps a folder, or says at once that another process does.
    ///
    /// Some network file systems know no locks. There the folder is used without one: a run that could not be made at all
    /// would help nobody.
    pub fn take(folder: &Utf8Path) -> Result<Self, LockError> {
        let path = folder.join(LOCK_FILE);
        let failed = |source| LockError::Io { path: path.clone(), source };
        loop {
            #[expect(clippy::disallowed_methods, reason = "the file holds nothing that could be torn")]
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
            // Whoever had the lock before may have removed the file after it was opened here: such a lock keeps nobody out.
            if is_at(&file, &path).map_err(failed)? {
                return Ok(Self { path, file: Some(file) });
            }
        }
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        if self.file.is_some() {
            // While the lock is still held, so that nobody's file but ours is removed. One that stays is no obstacle.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// True where the open file is the one that the path names.
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
    fn a_folder_has_one_writer_and_no_trace_of_it_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        let first = RunLock::take(folder).unwrap();
        assert!(matches!(RunLock::take(folder), Err(LockError::Held(_))));
        drop(first);
        assert!(!folder.join(LOCK_FILE).exists());
        RunLock::take(folder).unwrap();
    }

    #[test]
    fn the_file_of_a_killed_process_is_no_obstacle() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        crate::write::write(&folder.join(LOCK_FILE), b"", crate::write::Durability::Cached).unwrap();
        RunLock::take(folder).unwrap();
    }
}
