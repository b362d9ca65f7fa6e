//! Reopens the run folder of an interrupted process for writing. Which cases are missing is not decided here.

use std::io;
use std::sync::PoisonError;

use camino::{Utf8Path, Utf8PathBuf};

use super::layout::{ASSETS_FOLDER, MANIFEST_FILE};
use super::lock::{LockError, RunLock};
use super::reader::{ReadError, RunReader};
use super::writer::RunWriter;
use crate::read_file;
use crate::write::{self, WriteError};
use counterproof_artifact::canonical::Sha256Digest;
use counterproof_artifact::{AssetKind, Case, CaseId, Extra, Href, ManifestItem, Side};

/// A run folder that could not be reopened.
#[derive(Debug, thiserror::Error)]
pub enum ReopenError {
    /// The folder does not exist.
    #[error("there is no run folder `{0}`")]
    Missing(Utf8PathBuf),
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

impl RunReader {
    /// Reads the artifact of a case without validating it.
    pub fn read_case(&self, case: &CaseId) -> Result<Case, ReadError> {
        super::reader::read_document(self.folder(), &format!("{case}.json"))
    }

    /// Returns the names of all files directly under `assets/` except the manifest, sorted.
    pub fn asset_names(&self) -> Result<Vec<String>, ReadError> {
        let mut names = file_names(&self.folder().join(ASSETS_FOLDER))?;
        names.retain(|name| !MANIFEST_FILE.ends_with(&format!("/{name}")));
        names.sort_unstable();
        Ok(names)
    }
}

impl RunWriter {
    /// Reopens a run folder: removes the temporary files of an earlier process.
    ///
    /// The manifest starts empty; [`RunWriter::adopt`] adds the assets that are still needed.
    pub fn reopen(folder: Utf8PathBuf, side: Side) -> Result<Self, ReopenError> {
        if !folder.is_dir() {
            return Err(ReopenError::Missing(folder));
        }
        let lock = RunLock::acquire(&folder)?;
        for path in [&folder, &folder.join(ASSETS_FOLDER)] {
            write::remove_temporary_files(path);
        }
        Ok(Self::with_lock(folder, side, lock))
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
        write::remove(&self.folder().join(ASSETS_FOLDER).join(name))
    }

    /// Removes the manifest of the earlier end of the run, which is outdated.
    pub fn remove_manifest(&self) -> Result<(), WriteError> {
        write::remove(&self.folder.join(MANIFEST_FILE))
    }

    /// Removes a case: its artifact first, so that no artifact ever links to a missing asset.
    pub fn discard_case(&self, case: &CaseId) -> Result<(), WriteError> {
        write::remove(&self.folder.join(format!("{case}.json")))?;
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
        removed.iter().try_for_each(|href| write::remove(&self.folder.join(href.as_str())))
    }
}

/// Returns the names of the files in a folder; none where the folder does not exist.
fn file_names(folder: &Utf8Path) -> Result<Vec<String>, ReadError> {
    let failed = |source| ReadError::Io { path: folder.to_owned(), source };
    let entries = match folder.read_dir_utf8() {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        if entry.file_type().map_err(failed)?.is_file() {
            names.push(entry.file_name().to_owned());
        }
    }
    Ok(names)
}
