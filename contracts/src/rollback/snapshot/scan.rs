//! The present state of declared paths.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::SnapshotError;
use super::manifest::Modified;
use super::raw_path::RawPath;

/// The bits of a mode that are restored.
const MODE_BITS: u32 = 0o7777;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotLimits {
    /// The most bytes of all files.
    pub bytes: u64,
    /// The most files, folders and links.
    pub entries: u64,
}

impl Default for SnapshotLimits {
    fn default() -> Self {
        Self { bytes: 1 << 30, entries: 100_000 }
    }
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    File {
        mode: u32,
        modified: Modified,
        bytes: u64,
    },
    Folder {
        mode: u32,
        modified: Modified,
    },
    Link {
        target: RawPath,
        modified: Modified,
    },
    /// A pipe, a socket or a device.
    Special,
}

/// Returns everything at and below the declared paths, parents before their children.
pub(super) fn scan(
    root: &Path,
    declared: &[RawPath],
    limits: SnapshotLimits,
) -> Result<BTreeMap<RawPath, Found>, SnapshotError> {
    let (mut found, mut open, mut bytes) = (BTreeMap::new(), declared.to_vec(), 0);
    while let Some(path) = open.pop() {
        let Some(entry) = at(root, &path)? else { continue };
        match &entry {
            Found::Folder { .. } => {
                let children = children(root, &path)?;
                open.extend(children);
            }
            Found::File { bytes: length, .. } => bytes += length,
            Found::Link { .. } | Found::Special => {}
        }
        found.insert(path, entry);
        if (found.len() + open.len()) as u64 > limits.entries {
            return Err(SnapshotError::TooLarge { limit: format!("{} files and folders", limits.entries) });
        }
        if bytes > limits.bytes {
            return Err(SnapshotError::TooLarge { limit: format!("{} bytes", limits.bytes) });
        }
    }
    Ok(found)
}

/// Returns what is at a path, if anything.
pub(super) fn at(root: &Path, path: &RawPath) -> Result<Option<Found>, SnapshotError> {
    let absolute = path.below(root);
    let metadata = match fs::symlink_metadata(&absolute) {
        Ok(metadata) => metadata,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(SnapshotError::io("read", path)(error)),
    };
    let (mode, modified) = (mode(&metadata), modified(&metadata));
    Ok(Some(if metadata.is_symlink() {
        let target = fs::read_link(&absolute).map_err(SnapshotError::io("read the link", path))?;
        Found::Link { target: RawPath::new(target.as_os_str()), modified }
    } else if metadata.is_dir() {
        Found::Folder { mode, modified }
    } else if metadata.is_file() {
        Found::File { mode, modified, bytes: metadata.len() }
    } else {
        Found::Special
    }))
}

/// Returns the entries of a folder.
pub(super) fn children(root: &Path, folder: &RawPath) -> Result<Vec<RawPath>, SnapshotError> {
    let failed = |source| SnapshotError::io("list the folder", folder)(source);
    let entries = fs::read_dir(folder.below(root)).map_err(failed)?;
    entries.map(|entry| Ok(folder.child(&entry.map_err(failed)?.file_name()))).collect()
}

pub(super) fn mode(metadata: &Metadata) -> u32 {
    metadata.mode() & MODE_BITS
}

pub(super) fn modified(metadata: &Metadata) -> Modified {
    Modified { seconds: metadata.mtime(), nanoseconds: metadata.mtime_nsec() }
}
