//! Takes a snapshot.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, Permissions};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::canonical::Sha256Hasher;
use counterproof_artifact::{Href, Sha256Digest};
use counterproof_store::write::{self, StagedFolder, WriteError};
use counterproof_store::{confined_path, read_file};
use serde::{Deserialize, Serialize};

use super::restore::{self, Found, SnapshotLimits, mode, modified, scan};

/// Only the owner may look at copies: the files may be private.
const PRIVATE_MODE: u32 = 0o700;

/// Copies the declared paths of a working directory into a new folder, whose parent is created if necessary. A path that does not
/// exist is recorded as missing. `.` is the whole working directory.
pub fn take(
    root: &Utf8Path,
    declared: &[String],
    folder: &Utf8Path,
    limits: SnapshotLimits,
) -> Result<SnapshotStart, SnapshotError> {
    let root = root.canonicalize_utf8().map_err(SnapshotError::io("resolve the working directory", &root))?;
    let declared = declared_paths(declared)?;
    let found = scan_checked(&root, &declared, limits)?;
    // Only here: after the work, a special file is removed without a copy instead.
    if let Some(special) = found.iter().find(|(_, entry)| **entry == Found::Special) {
        return Err(SnapshotError::Special(special.0.to_string()));
    }
    store(&root, declared, &found, folder)
}

fn scan_checked(
    root: &Utf8Path,
    declared: &[RawPath],
    limits: SnapshotLimits,
) -> Result<BTreeMap<RawPath, Found>, SnapshotError> {
    if let Some(parent) = replaced_parent(root.as_std_path(), declared)? {
        let reason = format!("is below `{parent}`, which is a link or no folder; declare the real path");
        return Err(SnapshotError::Path { path: declared_below(declared, &parent), reason });
    }
    let found = scan(root.as_std_path(), declared, limits)?;
    // What is behind a declared link is not copied. The work could change it, and a rollback would report that nothing differs.
    let is_followed = |path: &&RawPath| {
        matches!(found.get(path), Some(Found::Link { .. })) && path.below(root.as_std_path()).exists()
    };
    if let Some(path) = declared.iter().find(is_followed) {
        let reason = "is a link, and a snapshot does not copy what it leads to; declare the real path".to_owned();
        return Err(SnapshotError::Path { path: path.to_string(), reason });
    }
    Ok(found)
}

fn declared_below(declared: &[RawPath], parent: &RawPath) -> String {
    declared.iter().find(|path| path.is_in(parent)).map(ToString::to_string).unwrap_or_default()
}

/// Returns the first folder above a declared path that exists and is not a folder.
pub(super) fn replaced_parent(root: &Path, declared: &[RawPath]) -> Result<Option<RawPath>, SnapshotError> {
    for parent in declared.iter().flat_map(RawPath::ancestors) {
        if !matches!(restore::at(root, &parent)?, None | Some(Found::Folder { .. })) {
            return Ok(Some(parent));
        }
    }
    Ok(None)
}

/// Copies what a scan has found, without special files, into a new folder that appears complete or not at all.
pub(super) fn store(
    root: &Utf8Path,
    declared: Vec<RawPath>,
    found: &BTreeMap<RawPath, Found>,
    folder: &Utf8Path,
) -> Result<SnapshotStart, SnapshotError> {
    let parent = folder.parent().unwrap_or(Utf8Path::new("."));
    write::create_folder(parent)?;
    let real = parent.canonicalize_utf8().map_err(SnapshotError::io("resolve", &parent))?;
    if let Some(path) = declared.iter().find(|path| real.as_std_path().starts_with(path.below(root.as_std_path()))) {
        let reason = format!("holds the folder of the snapshots, `{real}`");
        return Err(SnapshotError::Path { path: path.to_string(), reason });
    }
    // A crash while copying leaves no folder that looks like a snapshot.
    let staged = StagedFolder::new(folder, "snapshot")?;
    fs::set_permissions(staged.path(), Permissions::from_mode(PRIVATE_MODE))
        .map_err(SnapshotError::io("protect", &staged.path()))?;
    let files = staged.path().join(FILES);
    write::create_new_folder(&files)?;
    let (mut entries, mut bytes) = (BTreeMap::new(), 0);
    for (path, found) in found {
        if let Some(entry) = copy(root.as_std_path(), path, found, &files)? {
            bytes += if let Entry::File { bytes, .. } = &entry { *bytes } else { 0 };
            entries.insert(path.clone(), entry);
        }
    }
    let missing = missing_parents(root.as_std_path(), &declared)?;
    let (count, manifest) = (entries.len() as u64, Manifest::new(declared, missing, entries));
    let manifest = serde_json::to_vec_pretty(&manifest)
        .map_err(|error| SnapshotError::io("write", &folder.join(MANIFEST))(error.into()))?;
    write::write_new(&staged.path().join(MANIFEST), &manifest)?;
    // Before the folder appears: the work may destroy the originals right after.
    write::sync_tree(staged.path())?;
    staged.publish()?;
    // The store keeps the digest, so a snapshot that was edited later is not restored.
    let digest = Sha256Digest::from_bytes(&manifest);
    Ok(SnapshotStart { folder: folder.to_owned(), root: root.to_owned(), digest, entries: count, bytes })
}

fn missing_parents(root: &Path, declared: &[RawPath]) -> Result<Vec<RawPath>, SnapshotError> {
    let mut missing = Vec::new();
    for parent in declared.iter().flat_map(RawPath::ancestors) {
        if restore::at(root, &parent)?.is_none() && !missing.contains(&parent) {
            missing.push(parent);
        }
    }
    Ok(missing)
}

fn copy(root: &Path, path: &RawPath, found: &Found, files: &Utf8Path) -> Result<Option<Entry>, SnapshotError> {
    let to = path.below(files.as_std_path());
    let failed = |action| SnapshotError::io(action, path);
    for parent in to.parent().into_iter().filter(|parent| !parent.exists()) {
        fs::create_dir_all(parent).map_err(failed("copy"))?;
    }
    Ok(Some(match found {
        Found::Special => return Ok(None),
        Found::Folder { mode, modified } => {
            fs::create_dir_all(&to).map_err(failed("copy the folder"))?;
            Entry::Folder { mode: *mode, modified: *modified }
        }
        Found::Link { target, modified } => {
            write::put_link(&to, target.as_os_str()).map_err(failed("copy the link"))?;
            Entry::Link { target: target.clone(), modified: *modified }
        }
        Found::File { .. } => {
            // Mode and time of the file that was opened: the path may name another one by now.
            let (source, metadata) = read_file::open_exact(&path.below(root)).map_err(failed("read"))?;
            // Readable and writable for the owner whatever the original allows, or the copy could not be read again.
            let executable = PRIVATE_MODE & (mode(&metadata) | 0o600);
            let (digest, bytes) = copied(source, &to, executable).map_err(failed("copy"))?;
            Entry::File { mode: mode(&metadata), modified: modified(&metadata), bytes, sha256: digest }
        }
    }))
}

fn copied(source: impl Read, to: &Path, mode: u32) -> io::Result<(Sha256Digest, u64)> {
    let mut hashing = Hashing { source, hasher: Sha256Hasher::default() };
    write::put_file(to, mode, &mut hashing)?;
    Ok(hashing.hasher.finish())
}

struct Hashing<R> {
    source: R,
    hasher: Sha256Hasher,
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.hasher.update(&buffer[..read]);
        Ok(read)
    }
}

fn declared_paths(declared: &[String]) -> Result<Vec<RawPath>, SnapshotError> {
    let mut paths = Vec::new();
    for path in declared {
        let raw = match path.as_str() {
            "." => RawPath::new("".as_ref()),
            text => {
                let checked = text.parse::<Href>().map_err(|error| error.to_string());
                checked.map_err(|reason| SnapshotError::Path {
                    path: text.to_owned(),
                    reason: format!("is invalid: {reason}"),
                })?;
                RawPath::new(text.as_ref())
            }
        };
        paths.push(raw);
    }
    paths.sort();
    paths.dedup();
    let all = paths.clone();
    // A path below another one would be copied twice.
    paths.retain(|path| !all.iter().any(|other| other != path && path.is_in(other)));
    Ok(paths)
}

#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("the declared path `{path}` {reason}")]
    Path { path: String, reason: String },
    #[error("`{0}` is a pipe, a socket or a device, which has no copy; remove it, or do not declare it")]
    Special(String),
    #[error("the declared paths have more than {limit}; declare fewer paths")]
    TooLarge {
        /// The limit, with its unit.
        limit: String,
    },
    #[error("cannot {action} `{path}`")]
    Io { action: &'static str, path: String, source: io::Error },
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("the snapshot `{folder}` cannot be used: {reason}")]
    Damaged { folder: Utf8PathBuf, reason: String },
}

impl SnapshotError {
    pub(super) fn io(action: &'static str, path: &impl ToString) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_string();
        move |source| SnapshotError::Io { action, path, source }
    }

    pub const fn code(&self) -> &'static str {
        match self {
            SnapshotError::Path { .. } => "invalid_path",
            SnapshotError::Special(_) => "special_file",
            SnapshotError::TooLarge { .. } => "snapshot_too_large",
            SnapshotError::Damaged { .. } => "snapshot_damaged",
            SnapshotError::Io { .. } | SnapshotError::Write(_) => "storage_error",
        }
    }
}

/// Why a snapshot is not restored. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotRefusal {
    // Restoring below what replaced the folder would write elsewhere.
    #[error("`{0}` is no longer a folder; move it away, then retry the rollback")]
    ParentReplaced(String),
    // Files that cannot be saved must not be replaced.
    #[error("the files as they are now have more than {0}, too many to save them before the rollback")]
    TooLarge(String),
}

impl SnapshotRefusal {
    pub const fn code(&self) -> &'static str {
        match self {
            SnapshotRefusal::ParentReplaced(_) => "parent_replaced",
            SnapshotRefusal::TooLarge(_) => "snapshot_too_large",
        }
    }
}

pub(super) const MANIFEST: &str = "manifest.json";

pub(super) const FILES: &str = "files";

const FORMAT: u32 = 1;

/// A snapshot, as the start of an execution records it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotStart {
    pub folder: Utf8PathBuf,
    pub root: Utf8PathBuf,
    /// The digest of the manifest, which has those of the files.
    pub digest: Sha256Digest,
    pub entries: u64,
    pub bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Modified {
    pub(super) seconds: i64,
    pub(super) nanoseconds: i64,
}

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

/// Paths are not text, so they cannot be the keys of an object.
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

/// A path relative to the working directory, or the target of a link.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "Encoded", into = "Encoded")]
pub(super) struct RawPath(Vec<u8>);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Encoded {
    Text(String),
    Bytes { bytes: Vec<u8> },
}

impl RawPath {
    pub(super) fn new(path: &OsStr) -> Self {
        Self(path.as_bytes().to_vec())
    }

    /// Returns the path of an entry of this folder. The empty path is the working directory.
    pub(super) fn child(&self, name: &OsStr) -> Self {
        let mut bytes = self.0.clone();
        if !bytes.is_empty() {
            bytes.push(b'/');
        }
        bytes.extend_from_slice(name.as_bytes());
        Self(bytes)
    }

    /// Returns the folders above the path, outermost first, without the working directory.
    pub(super) fn ancestors(&self) -> impl Iterator<Item = Self> + '_ {
        let slashes = self.0.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        slashes.map(|(at, _)| Self(self.0[..at].to_vec()))
    }

    /// True for the path itself and everything below it.
    pub(super) fn is_in(&self, folder: &Self) -> bool {
        let rest = self.0.strip_prefix(&*folder.0);
        rest.is_some_and(|rest| folder.0.is_empty() || rest.is_empty() || rest[0] == b'/')
    }

    pub(super) fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn as_os_str(&self) -> &OsStr {
        OsStr::from_bytes(&self.0)
    }

    pub(super) fn below(&self, root: &Path) -> PathBuf {
        if self.is_root() { root.to_owned() } else { root.join(self.as_os_str()) }
    }
}

impl fmt::Display for RawPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() {
            return f.write_str(".");
        }
        for chunk in self.0.utf8_chunks() {
            f.write_str(&counterproof_artifact::escape_invisible(chunk.valid()))?;
            write!(f, "{}", chunk.invalid().escape_ascii())?;
        }
        Ok(())
    }
}

impl From<Encoded> for RawPath {
    fn from(encoded: Encoded) -> Self {
        match encoded {
            Encoded::Text(text) => Self(text.into_bytes()),
            Encoded::Bytes { bytes } => Self(bytes),
        }
    }
}

impl From<RawPath> for Encoded {
    fn from(path: RawPath) -> Self {
        match OsString::from_vec(path.0).into_string() {
            Ok(text) => Encoded::Text(text),
            Err(bytes) => Encoded::Bytes { bytes: bytes.into_vec() },
        }
    }
}
