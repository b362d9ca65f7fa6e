//! The content of a snapshot.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use counterproof_artifact::Sha256Digest;
use counterproof_store::{confined_path, read_file};
use serde::{Deserialize, Serialize};

use super::SnapshotError;
use super::raw_path::RawPath;

/// The name of the manifest in the folder of a snapshot.
pub(super) const MANIFEST: &str = "manifest.json";

/// The folder of the copies.
pub(super) const FILES: &str = "files";

/// The version of the format.
const FORMAT: u32 = 1;

/// A snapshot, as the start of an execution records it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotStart {
    pub folder: Utf8PathBuf,
    /// The working directory.
    pub root: Utf8PathBuf,
    /// The digest of the manifest, which has those of the files.
    pub digest: Sha256Digest,
    /// The number of files, folders and links.
    pub entries: u64,
    /// The bytes of the files.
    pub bytes: u64,
}

/// A time of modification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Modified {
    pub(super) seconds: i64,
    pub(super) nanoseconds: i64,
}

/// An entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Entry {
    File { mode: u32, modified: Modified, bytes: u64, sha256: Sha256Digest },
    Folder { mode: u32, modified: Modified },
    Link { target: RawPath, modified: Modified },
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    format: u32,
    /// The declared paths, none below another one.
    pub(super) declared: Vec<RawPath>,
    /// Folders above declared paths that did not exist.
    pub(super) missing_parents: Vec<RawPath>,
    /// Everything that existed, parents before their children.
    #[serde(with = "as_list")]
    pub(super) entries: BTreeMap<RawPath, Entry>,
}

impl Manifest {
    pub(super) fn new(
        declared: Vec<RawPath>,
        missing_parents: Vec<RawPath>,
        entries: BTreeMap<RawPath, Entry>,
    ) -> Self {
        Self { format: FORMAT, declared, missing_parents, entries }
    }

    /// Reads the manifest of a snapshot, and checks its digest.
    pub(super) fn read(start: &SnapshotStart) -> Result<Self, SnapshotError> {
        let damaged = |reason: String| SnapshotError::Damaged { folder: start.folder.clone(), reason };
        let bytes = confined_path::read_up_to(&start.folder, MANIFEST, read_file::MAX_DOCUMENT_BYTES);
        let bytes = bytes.map_err(|error| damaged(format!("{MANIFEST}: {error}")))?;
        if Sha256Digest::from_bytes(&bytes) != start.digest {
            return Err(damaged(format!("{MANIFEST} was changed")));
        }
        let manifest: Self = serde_json::from_slice(&bytes).map_err(|error| damaged(format!("{MANIFEST}: {error}")))?;
        if manifest.format == FORMAT { Ok(manifest) } else { Err(damaged("its format is unknown".to_owned())) }
    }
}

/// Paths are no text, so they cannot be the keys of an object.
mod as_list {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Entry, RawPath};

    #[derive(Serialize)]
    struct Listed<'a> {
        path: &'a RawPath,
        #[serde(flatten)]
        entry: &'a Entry,
    }

    #[derive(Deserialize)]
    struct Owned {
        path: RawPath,
        #[serde(flatten)]
        entry: Entry,
    }

    pub(super) fn serialize<S: Serializer>(
        entries: &BTreeMap<RawPath, Entry>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(entries.iter().map(|(path, entry)| Listed { path, entry }))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<RawPath, Entry>, D::Error> {
        let list = Vec::<Owned>::deserialize(deserializer)?;
        Ok(list.into_iter().map(|Owned { path, entry }| (path, entry)).collect())
    }
}
