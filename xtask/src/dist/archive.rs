//! Compressed archives. Equal files make equal bytes: names are sorted by the caller, and owners and times are left out.

use std::io;

use camino::Utf8Path;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::targets::Build;
use super::{ArchiveFile, VERSION};
use crate::folders;
use crate::step::{Failure, progress};

/// An archive in memory.
pub(super) struct Archive(tar::Builder<GzEncoder<Vec<u8>>>);

impl Archive {
    /// Starts an archive. The programs of the profile of development are large, and this program is slow to compress them if it has
    /// that profile itself.
    pub(super) fn new(compressed: bool) -> Self {
        let level = if compressed { Compression::best() } else { Compression::none() };
        Self(tar::Builder::new(GzEncoder::new(Vec::new(), level)))
    }

    pub(super) fn add(&mut self, path: &str, bytes: &[u8], mode: u32) -> Result<(), Failure> {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(mode);
        self.0.append_data(&mut header, path, bytes).map_err(failed)
    }

    pub(super) fn write(self, path: &Utf8Path) -> Result<(), Failure> {
        let bytes = self.0.into_inner().and_then(GzEncoder::finish).map_err(failed)?;
        progress(&format!("==> {path}: {:.1} MB", bytes.len() as f64 / 1e6));
        folders::write(path, bytes)
    }
}

fn failed(source: io::Error) -> Failure {
    Failure::File { path: "an archive".into(), source }
}

pub(super) const PROGRAM: u32 = 0o755;
pub(super) const FILE: u32 = 0o644;

/// Writes the archive of a target.
pub(super) fn write(out: &Utf8Path, build: &Build, files: &[ArchiveFile]) -> Result<(), Failure> {
    // The metadata for `cargo binstall` in cli/Cargo.toml has this name.
    let name = format!("counterproof-{VERSION}-{}", build.target);
    let mut archive = Archive::new(build.compressed);
    for (program, path) in build.programs() {
        archive.add(&format!("{name}/{program}"), &folders::read(path)?, PROGRAM)?;
    }
    for (file, path) in files {
        archive.add(&format!("{name}/{file}"), &folders::read(path)?, FILE)?;
    }
    archive.write(&out.join(format!("{name}.tar.gz")))
}
