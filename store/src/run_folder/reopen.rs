//! The lock of a run folder, and the reopening of the folder of an interrupted process. Which cases are missing is not
//! decided here.

use std::io;
use std::sync::PoisonError;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::canonical::Sha256Digest;
use counterproof_artifact::{AssetKind, CaseId, Extra, Href, ManifestItem, Side};

use super::packed::RUN_ARCHIVE;
use super::reader::{ASSETS_FOLDER, MANIFEST_FILE, ReadError};
use super::writer::RunWriter;
use crate::file_lock::FileLock;
use crate::read_file;
use crate::write::{self, WriteError};

/// A run folder that could not be reopened.
#[derive(Debug, thiserror::Error)]
pub enum ReopenError {
    /// The folder does not exist.
    #[error("there is no run folder `{0}`")]
    Missing(Utf8PathBuf),
    /// The run is packed, so none of its cases has a file.
    #[error("`{0}` is packed, and only a run with its files can go on")]
    Packed(Utf8PathBuf),
    /// The folder could not be locked.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A file could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file could not be written or removed.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl RunWriter {
    /// Reopens a run folder: removes the temporary files of an earlier process.
    ///
    /// The manifest starts empty; [`RunWriter::adopt`] adds the assets that are still needed.
    pub fn reopen(folder: Utf8PathBuf, side: Side) -> Result<Self, ReopenError> {
        if !folder.is_dir() {
            return Err(ReopenError::Missing(folder));
        }
        if folder.join(RUN_ARCHIVE).exists() {
            return Err(ReopenError::Packed(folder));
        }
        // Before anything is removed: another process may be writing.
        let writer = Self::lock(folder, side)?;
        for path in [&writer.folder, &writer.folder.join(ASSETS_FOLDER)] {
            write::remove_temporary_files(path);
        }
        Ok(writer)
    }

    /// Adds an asset that is already on disk to the manifest.
    pub fn adopt(&self, name: &str, kind: AssetKind, case: Option<CaseId>, extra: Extra) -> Result<(), ReadError> {
        let path = self.folder().join(ASSETS_FOLDER).join(name);
        let failed = |source| ReadError::Io { path: path.clone(), source };
        let href: Href = format!("{ASSETS_FOLDER}/{name}").parse().map_err(|error| failed(io::Error::other(error)))?;
        // Hashed from disk: an earlier manifest may list other bytes than those that survived a crash.
        let (digest, size) =
            read_file::open(&path).and_then(|(file, _)| Sha256Digest::from_reader(file)).map_err(failed)?;
        let item = ManifestItem {
            asset_id: name.to_owned(),
            href,
            kind,
            side: case.as_ref().map(|_| self.side),
            case_id: case,
            size_bytes: size.into(),
            sha256: Some(digest),
            extra,
        };
        self.items.lock().unwrap_or_else(PoisonError::into_inner).push(item);
        Ok(())
    }

    /// Removes an asset that was not adopted.
    pub fn remove_asset(&self, name: &str) -> Result<(), WriteError> {
        self.remove_file(&self.folder().join(ASSETS_FOLDER).join(name))
    }

    /// Removes the manifest of the earlier end of the run, which is outdated.
    pub fn remove_manifest(&self) -> Result<(), WriteError> {
        self.remove_file(&self.folder.join(MANIFEST_FILE))
    }

    /// Removes a case: its artifact first, so that no artifact ever links to a missing asset.
    pub fn discard_case(&self, case: &CaseId) -> Result<(), WriteError> {
        self.remove_file(&self.folder.join(format!("{case}.json")))?;
        // A removal is durable only after this sync, and the assets must not disappear before the artifact.
        write::sync(&self.folder)?;
        let mut items = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        let mut removed = Vec::new();
        items.retain(|item| {
            let stays = item.case_id.as_ref() != Some(case);
            if !stays {
                removed.push(item.href.clone());
            }
            stays
        });
        removed.iter().try_for_each(|href| self.remove_file(&self.folder.join(href.as_str())))
    }
}

/// The lock file in a run folder. It belongs to no document and is removed when the writer is done.
pub const LOCK_FILE: &str = ".lock";

/// A run folder that could not be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds the lock.
    #[error("another runner is writing to `{0}`")]
    Busy(Utf8PathBuf),
    /// The lock file could not be opened or locked.
    #[error("failed to lock `{path}`")]
    Io {
        /// The lock file.
        path: Utf8PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// Locks a run folder for one writer, or returns [`LockError::Busy`] at once. A file system without locks is used without one.
/// The lock file of a killed process does not block: the system has released its lock.
pub fn lock_run_folder(folder: &Utf8Path) -> Result<FileLock, LockError> {
    let path = folder.join(LOCK_FILE);
    match FileLock::try_lock(&path) {
        Ok(Some(lock)) => Ok(lock),
        Ok(None) => Err(LockError::Busy(folder.to_owned())),
        Err(source) => Err(LockError::Io { path, source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_writer_and_no_lock_file_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        let first = lock_run_folder(folder).unwrap();
        assert!(matches!(lock_run_folder(folder), Err(LockError::Busy(_))));
        drop(first);
        assert!(!folder.join(LOCK_FILE).exists());
        lock_run_folder(folder).unwrap();
    }

    #[test]
    fn the_lock_file_of_a_killed_process_does_not_block() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        crate::write::write(&folder.join(LOCK_FILE), b"", crate::write::Durability::Cached).unwrap();
        lock_run_folder(folder).unwrap();
    }
}
