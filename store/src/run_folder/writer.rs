//! A run folder under construction.

use std::io::{self, Write};
use std::sync::{Mutex, OnceLock, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{
    AssetKind, Case, CaseId, Extra, Href, Manifest, ManifestItem, ManifestSchema, Run, RunId, Side,
};

use super::asset::{AssetWriter, HashedFile};
use super::layout::{ASSETS_FOLDER, MANIFEST_FILE, RUN_FILE, SAFE_EXTENSIONS};
use super::lock::{LockError, RunLock};
use crate::write::{self, Durability, WriteError};

/// A run folder that could not be created.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// Another run has this name.
    #[error("the run folder `{0}` already exists")]
    Exists(Utf8PathBuf),
    /// The folder could not be created.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The folder could not be locked.
    #[error(transparent)]
    Lock(#[from] LockError),
}

/// A run folder under construction, locked against other processes. Threads can share it.
#[derive(Debug)]
pub struct RunWriter {
    pub(super) folder: Utf8PathBuf,
    pub(super) side: Side,
    /// The assets that the manifest will list.
    pub(super) items: Mutex<Vec<ManifestItem>>,
    /// Set once the assets folder exists.
    assets_created: OnceLock<()>,
    _lock: RunLock,
}

impl RunWriter {
    /// Creates `<out>/<side>/<run_id>/`, which must not exist yet.
    pub fn create(out: &Utf8Path, side: Side, run_id: &RunId) -> Result<Self, CreateError> {
        let parent = out.join(side.as_str());
        write::create_folder(&parent)?;
        Self::create_at(parent.join(run_id.as_str()), side)
    }

    /// Creates a run folder at a path that must not exist yet. Its parent must exist.
    pub fn create_at(folder: Utf8PathBuf, side: Side) -> Result<Self, CreateError> {
        match write::create_new_folder(&folder) {
            Ok(()) => {
                let lock = RunLock::acquire(&folder)?;
                Ok(Self::with_lock(folder, side, lock))
            }
            Err(error) if error.source.kind() == io::ErrorKind::AlreadyExists => Err(CreateError::Exists(folder)),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn with_lock(folder: Utf8PathBuf, side: Side, lock: RunLock) -> Self {
        Self { folder, side, items: Mutex::default(), assets_created: OnceLock::new(), _lock: lock }
    }

    pub fn folder(&self) -> &Utf8Path {
        &self.folder
    }

    pub const fn side(&self) -> Side {
        self.side
    }

    /// Writes `run.json`, replacing the one of the start of the run.
    pub fn write_run(&self, run: &Run) -> Result<(), WriteError> {
        write::write_json(&self.folder.join(RUN_FILE), run, Durability::Synced)
    }

    /// Writes an artifact. The case is complete and durable when this returns.
    pub fn write_case(&self, case: &Case) -> Result<(), WriteError> {
        write::write_json(&self.folder.join(format!("{}.json", case.case_id)), case, Durability::Synced)
    }

    /// Starts an asset with a plain file name, such as `refund_001.attempt2.body.bin`.
    pub fn asset(&self, name: &str, kind: AssetKind, case: Option<&CaseId>) -> Result<AssetWriter<'_>, WriteError> {
        let (path, href) = self.asset_path(name)?;
        self.create_assets_folder()?;
        Ok(AssetWriter { run: self, href, kind, case: case.cloned(), file: HashedFile::create(&path)? })
    }

    /// Creates the assets folder before the first asset; a run without assets has none.
    pub(super) fn create_assets_folder(&self) -> Result<(), WriteError> {
        if self.assets_created.get().is_none() {
            write::create_folder(&self.folder.join(ASSETS_FOLDER))?;
            let _ = self.assets_created.set(());
        }
        Ok(())
    }

    /// Returns the path and the href of an asset with a plain file name.
    pub(super) fn asset_path(&self, name: &str) -> Result<(Utf8PathBuf, Href), WriteError> {
        let path = self.folder.join(ASSETS_FOLDER).join(name);
        let invalid = |reason: String| WriteError { path: path.clone(), source: io::Error::other(reason) };
        let href: Href = format!("{ASSETS_FOLDER}/{name}").parse().map_err(|error| invalid(format!("{error}")))?;
        if name.contains('/') || !path.extension().is_some_and(|extension| SAFE_EXTENSIONS.contains(&extension)) {
            return Err(invalid(format!(
                "`{name}` is not a plain name with one of the extensions {SAFE_EXTENSIONS:?}"
            )));
        }
        Ok((path, href))
    }

    /// Renames an asset into place and adds it to the manifest.
    pub(super) fn commit_asset(
        &self,
        file: HashedFile,
        href: Href,
        kind: AssetKind,
        case: Option<&CaseId>,
    ) -> Result<ManifestItem, WriteError> {
        file.file.commit(Durability::Synced)?;
        let (digest, size) = file.hasher.finish();
        let item = ManifestItem {
            asset_id: href.as_str().rsplit('/').next().unwrap_or_default().to_owned(),
            href,
            kind,
            case_id: case.cloned(),
            side: case.map(|_| self.side),
            size_bytes: size.into(),
            sha256: Some(digest),
            extra: Extra::new(),
        };
        // Only after the file has its name: the manifest must not list an asset that does not exist.
        self.items.lock().unwrap_or_else(PoisonError::into_inner).push(item.clone());
        Ok(item)
    }

    /// Writes a complete asset, which is durable when this returns.
    pub fn write_asset(
        &self,
        name: &str,
        kind: AssetKind,
        case: Option<&CaseId>,
        bytes: &[u8],
    ) -> Result<ManifestItem, WriteError> {
        let mut asset = self.asset(name, kind, case)?;
        asset.write_all(bytes).map_err(|source| WriteError { path: self.folder.join(asset.href.as_str()), source })?;
        asset.finish()
    }

    /// Writes `assets/manifest.json`, if there are assets.
    pub fn write_manifest(&self, generated_at: &str) -> Result<(), WriteError> {
        let mut listed = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        if listed.is_empty() {
            return Ok(());
        }
        // Moved into the document and back: a run can have very many assets.
        let mut items = std::mem::take(&mut *listed);
        // Threads add assets in any order. Sorted, equal runs have equal manifests.
        items.sort_unstable_by(|a, b| a.href.cmp(&b.href));
        let manifest = Manifest {
            schema_version: ManifestSchema::V1,
            generated_at: generated_at.to_owned(),
            items,
            extra: Extra::new(),
        };
        let written = write::write_json(&self.folder.join(MANIFEST_FILE), &manifest, Durability::Synced);
        // Also after a failed write, so that the caller can try again.
        *listed = manifest.items;
        written
    }
}
