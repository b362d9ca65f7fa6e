//! What differs between a snapshot and the present state.

use std::collections::BTreeMap;
use std::path::Path;

use counterproof_artifact::Sha256Digest;
use counterproof_store::read_file;

use super::SnapshotError;
use super::manifest::{Entry, Manifest};
use super::raw_path::RawPath;
use super::scan::Found;

/// The differences, each list with parents before their children.
#[derive(Debug, Default)]
pub(super) struct Differences {
    /// Paths to remove: they did not exist, or were of another kind.
    pub(super) removed: Vec<RawPath>,
    /// Paths whose content is restored or that are created.
    pub(super) restored: Vec<RawPath>,
    /// Files and links of which only the mode or the time differs.
    pub(super) attributes: Vec<RawPath>,
}

impl Differences {
    /// Compares the present state with a manifest. Reads files of the same size.
    pub(super) fn new(root: &Path, manifest: &Manifest, now: &BTreeMap<RawPath, Found>) -> Result<Self, SnapshotError> {
        let mut differences = Self::default();
        for (path, found) in now {
            match manifest.entries.get(path) {
                Some(entry) if is_same_kind(entry, found) => {}
                _ => differences.removed.push(path.clone()),
            }
        }
        for (path, entry) in &manifest.entries {
            match now.get(path).filter(|found| is_same_kind(entry, found)) {
                None => differences.restored.push(path.clone()),
                Some(found) if !has_same_content(root, path, entry, found)? => differences.restored.push(path.clone()),
                Some(found) if !has_same_attributes(entry, found) => differences.attributes.push(path.clone()),
                Some(_) => {}
            }
        }
        Ok(differences)
    }

    /// True if no content differs.
    pub(super) fn has_content(&self) -> bool {
        !self.removed.is_empty() || !self.restored.is_empty()
    }
}

fn is_same_kind(entry: &Entry, found: &Found) -> bool {
    matches!(
        (entry, found),
        (Entry::File { .. }, Found::File { .. })
            | (Entry::Folder { .. }, Found::Folder { .. })
            | (Entry::Link { .. }, Found::Link { .. })
    )
}

fn has_same_content(root: &Path, path: &RawPath, entry: &Entry, found: &Found) -> Result<bool, SnapshotError> {
    match (entry, found) {
        (Entry::Link { target, .. }, Found::Link { target: now, .. }) => Ok(target == now),
        (Entry::File { bytes, sha256, .. }, Found::File { bytes: now, .. }) if bytes == now => {
            Ok(digest(&path.below(root), path)? == *sha256)
        }
        (Entry::Folder { .. }, _) => Ok(true),
        _ => Ok(false),
    }
}

fn has_same_attributes(entry: &Entry, found: &Found) -> bool {
    match (entry, found) {
        (Entry::File { mode, modified, .. }, Found::File { mode: now, modified: at, .. })
        | (Entry::Folder { mode, modified }, Found::Folder { mode: now, modified: at }) => {
            (mode, modified) == (now, at)
        }
        (Entry::Link { modified, .. }, Found::Link { modified: at, .. }) => modified == at,
        _ => false,
    }
}

/// Returns the digest of a file.
pub(super) fn digest(absolute: &Path, path: &RawPath) -> Result<Sha256Digest, SnapshotError> {
    let read = || Sha256Digest::from_reader(read_file::open_exact(absolute)?.0);
    read().map(|(digest, _)| digest).map_err(SnapshotError::io("read", path))
}
