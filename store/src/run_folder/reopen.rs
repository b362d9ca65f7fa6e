//! A run folder that another process left behind, opened for writing again. What is missing in it is not judged here.

use std::fs;
use std::io;
use std::sync::PoisonError;

use camino::{Utf8Path, Utf8PathBuf};

use super::{ASSETS_FOLDER, MANIFEST_FILE, ReadError, RunReader, RunWriter, restore};
use crate::write::{self, TEMPORARY_PREFIX, WriteError};
use crate::{LockError, RunLock};
use counterproof_artifact::canonical::Sha256Digest;
use counterproof_artifact::{AssetKind, Case, CaseId, Extra, Href, ManifestItem, Side};

/// Why a run folder could not be opened again.
#[derive(Debug, thiserror::Error)]
pub enum ReopenError {
    /// There is no such folder.
    #[error("there is no run folder `{0}`")]
    Missing(Utf8PathBuf),
    /// The folder could not be kept for this process alone.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// What is there could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// What is of no use could not be removed.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl RunReader {
    /// Reads the artifact of a case, without judging it.
    pub fn read_case(&self, case: &CaseId) -> Result<Case, ReadError> {
        super::reader::read_document(self.folder(), &format!("{case}.json"))
    }

    /// The names of all files directly under `assets/` but the manifest, sorted.
    pub fn asset_names(&self) -> Result<Vec<String>, ReadError> {
        let mut names = file_names(&self.folder().join(ASSETS_FOLDER))?;
        names.retain(|name| !MANIFEST_FILE.ends_with(&format!("/{name}")));
        names.sort_unstable();
        Ok(names)
    }
}

impl RunWriter {
    /// Opens `<folder>` again, and removes the temporary files of whoever was killed there. What the
    /// journal holds is in its place afterwards, and the journal is gone.
    ///
    /// The manifest starts empty: [`RunWriter::adopt`] enters what is to stay.
    pub fn reopen(folder: Utf8PathBuf, side: Side) -> Result<Self, ReopenError> {
        if !folder.is_dir() {
            return Err(ReopenError::Missing(folder));
        }
        let lock = RunLock::take(&folder)?;
        for place in [folder.clone(), folder.join(ASSETS_FOLDER)] {
            for name in file_names(&place)?.iter().filter(|name| name.starts_with(TEMPORARY_PREFIX)) {
                write::remove(&place.join(name))?;
            }
        }
        restore::restore(&folder)?;
        Ok(Self::locked(folder, side, lock))
    }

    /// Enters an asset that is on disk into the manifest.
    pub fn adopt(&self, name: &str, kind: AssetKind, case: Option<CaseId>, extra: Extra) -> Result<(), ReadError> {
        let path = self.folder().join(ASSETS_FOLDER).join(name);
        let failed = |source| ReadError::Io { path: path.clone(), source };
        let href: Href = format!("{ASSETS_FOLDER}/{name}").parse().map_err(|error| failed(io::Error::other(error)))?;
        let (digest, size) = fs::File::open(&path).and_then(Sha256Digest::of_reader).map_err(failed)?;
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

    /// Removes an asset of no use, before it is adopted.
    pub fn remove_asset(&self, name: &str) -> Result<(), WriteError> {
        write::remove(&self.folder().join(ASSETS_FOLDER).join(name))
    }

    /// Removes the manifest that was written when the run ended before: it is no longer true.
    pub fn remove_manifest(&self) -> Result<(), WriteError> {
        write::remove(&self.folder.join(MANIFEST_FILE))
    }

    /// Takes a case back: its artifact first, since what it links to goes next.
    pub fn discard_case(&self, case: &CaseId) -> Result<(), WriteError> {
        write::remove(&self.folder.join(format!("{case}.json")))?;
        write::sync(&self.folder)?;
        let mut items = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        let mut gone = Vec::new();
        items.retain(|item| {
            let stays = item.case_id.as_ref() != Some(case);
            if !stays {
                gone.push(item.href.clone());
            }
            stays
        });
        gone.iter().try_for_each(|href| write::remove(&self.folder.join(href.as_str())))
    }
}

/// The names of the files of a folder; none where it is not there.
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
