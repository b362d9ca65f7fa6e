//! Assets that get their names last: bytes go to disk as they come, hashed and counted on the way, and what they are called
//! is decided when all of them are there. What is in them is not looked at.

use std::io::{self, Write};

use camino::Utf8Path;

use crate::write::{AtomicFile, WriteError};
use crate::{ASSETS_FOLDER, RunWriter};
use counterproof_artifact::canonical::Sha256Hasher;
use counterproof_artifact::{AssetKind, CaseId, ManifestItem};

/// Bytes on their way to disk, hashed and counted on the way; gone when dropped.
#[derive(Debug)]
pub(crate) struct HashedFile {
    pub(crate) file: AtomicFile,
    pub(crate) hasher: Sha256Hasher,
}

impl HashedFile {
    pub(crate) fn create(path: &Utf8Path) -> Result<Self, WriteError> {
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

/// An asset without a name; gone when dropped before [`RunWriter::name_spool`].
#[derive(Debug)]
pub struct Spool(HashedFile);

impl RunWriter {
    /// Starts an asset without a name.
    pub fn spool(&self) -> Result<Spool, WriteError> {
        self.make_assets_folder()?;
        let folder = self.folder().join(ASSETS_FOLDER);
        // It never stands at this path: it is given its own before it is done.
        HashedFile::create(&folder.join("unnamed")).map(Spool)
    }

    /// Gives a spooled asset its name and enters it into the manifest.
    pub fn name_spool(
        &self,
        spool: Spool,
        name: &str,
        kind: AssetKind,
        case: Option<&CaseId>,
    ) -> Result<ManifestItem, WriteError> {
        let (path, href) = self.asset_place(name)?;
        let HashedFile { file, hasher } = spool.0;
        self.enter(HashedFile { file: file.with_path(&path), hasher }, href, kind, case)
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
