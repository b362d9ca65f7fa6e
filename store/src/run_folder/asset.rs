//! Assets that are streamed to disk: hashed and counted on the way.

use std::io::{self, Write};

use camino::Utf8Path;
use counterproof_artifact::canonical::Sha256Hasher;
use counterproof_artifact::{AssetKind, CaseId, Href, ManifestItem};

use super::layout::ASSETS_FOLDER;
use super::writer::RunWriter;
use crate::write::{AtomicFile, WriteError};

/// A file under construction that hashes and counts what is written. Dropping it removes the file.
#[derive(Debug)]
pub(super) struct HashedFile {
    pub(super) file: AtomicFile,
    pub(super) hasher: Sha256Hasher,
}

impl HashedFile {
    pub(super) fn create(path: &Utf8Path) -> Result<Self, WriteError> {
        Ok(Self { file: AtomicFile::create(path)?, hasher: Sha256Hasher::default() })
    }
}

impl Write for HashedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// An asset under construction. Dropping it before [`AssetWriter::finish`] removes the file.
#[derive(Debug)]
pub struct AssetWriter<'run> {
    pub(super) run: &'run RunWriter,
    pub(super) href: Href,
    pub(super) kind: AssetKind,
    pub(super) case: Option<CaseId>,
    pub(super) file: HashedFile,
}

impl AssetWriter<'_> {
    /// Renames the asset into place and adds it to the manifest.
    pub fn finish(self) -> Result<ManifestItem, WriteError> {
        self.run.commit_asset(self.file, self.href, self.kind, self.case.as_ref())
    }
}

impl Write for AssetWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// An asset whose name is chosen after its content is known. Dropping it before [`RunWriter::name_asset`] removes the file.
#[derive(Debug)]
pub struct UnnamedAsset(HashedFile);

impl RunWriter {
    /// Starts an asset that gets its name later.
    pub fn unnamed_asset(&self) -> Result<UnnamedAsset, WriteError> {
        self.create_assets_folder()?;
        // Only selects the folder of the temporary file: `name_asset` replaces this path before the rename.
        let path = self.folder().join(ASSETS_FOLDER).join("unnamed");
        HashedFile::create(&path).map(UnnamedAsset)
    }

    /// Names an asset and adds it to the manifest.
    pub fn name_asset(
        &self,
        asset: UnnamedAsset,
        name: &str,
        kind: AssetKind,
        case: Option<&CaseId>,
    ) -> Result<ManifestItem, WriteError> {
        let (path, href) = self.asset_path(name)?;
        let HashedFile { file, hasher } = asset.0;
        self.commit_asset(HashedFile { file: file.with_path(&path), hasher }, href, kind, case)
    }
}

impl Write for UnnamedAsset {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
