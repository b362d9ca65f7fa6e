//! Assets that get their names last: bytes go to disk as they come, hashed and counted on the way, and what they are called
//! is decided when all of them are there. What is in them is not looked at.

use std::io::{self, Write};

use crate::canonical::Sha256Hasher;
use crate::store::{ASSETS_FOLDER, RunWriter};
use crate::write::{AtomicFile, WriteError};
use crate::{AssetKind, CaseId, ManifestItem};

/// Bytes on their way to disk; gone when dropped before [`RunWriter::name_spool`].
#[derive(Debug)]
pub struct Spool {
    file: AtomicFile,
    hasher: Sha256Hasher,
}

impl RunWriter {
    /// Starts an asset without a name.
    pub fn spool(&self) -> Result<Spool, WriteError> {
        self.make_assets_folder()?;
        let folder = self.folder().join(ASSETS_FOLDER);
        // It never stands at this path: it is given its own before it is done.
        Ok(Spool { file: AtomicFile::create(&folder.join("unnamed"))?, hasher: Sha256Hasher::default() })
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
        self.enter(spool.file.at(&path), spool.hasher, href, kind, case)
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
