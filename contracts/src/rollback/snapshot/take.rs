//! Takes a snapshot.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use camino::Utf8Path;
use counterproof_artifact::canonical::Sha256Hasher;
use counterproof_artifact::{Href, Sha256Digest};
use counterproof_store::read_file;
use counterproof_store::write::{self, StagedFolder};

use super::manifest::{Entry, FILES, MANIFEST, Manifest};
use super::raw_path::RawPath;
use super::scan::{self, Found, SnapshotLimits, mode, modified, scan};
use super::{SnapshotError, SnapshotStart};

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
    if let Some(special) = found.iter().find(|(_, entry)| **entry == Found::Special) {
        return Err(SnapshotError::Special(special.0.to_string()));
    }
    store(&root, declared, &found, folder)
}

/// Returns the present state of the declared paths. A folder above one of them must be no link.
fn scan_checked(
    root: &Utf8Path,
    declared: &[RawPath],
    limits: SnapshotLimits,
) -> Result<BTreeMap<RawPath, Found>, SnapshotError> {
    if let Some(parent) = replaced_parent(root.as_std_path(), declared)? {
        let reason = format!("is below `{parent}`, which is a link or no folder; declare the real path");
        return Err(SnapshotError::Path { path: declared_below(declared, &parent), reason });
    }
    scan(root.as_std_path(), declared, limits)
}

fn declared_below(declared: &[RawPath], parent: &RawPath) -> String {
    declared.iter().find(|path| path.is_in(parent)).map(ToString::to_string).unwrap_or_default()
}

/// Returns the first folder above a declared path that exists and is no folder.
pub(super) fn replaced_parent(root: &Path, declared: &[RawPath]) -> Result<Option<RawPath>, SnapshotError> {
    for parent in declared.iter().flat_map(RawPath::ancestors) {
        if !matches!(scan::at(root, &parent)?, None | Some(Found::Folder { .. })) {
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
    write::sync_tree(staged.path())?;
    staged.publish()?;
    let digest = Sha256Digest::from_bytes(&manifest);
    Ok(SnapshotStart { folder: folder.to_owned(), root: root.to_owned(), digest, entries: count, bytes })
}

fn missing_parents(root: &Path, declared: &[RawPath]) -> Result<Vec<RawPath>, SnapshotError> {
    let mut missing = Vec::new();
    for parent in declared.iter().flat_map(RawPath::ancestors) {
        if scan::at(root, &parent)?.is_none() && !missing.contains(&parent) {
            missing.push(parent);
        }
    }
    Ok(missing)
}

/// Copies an entry under its name. Returns `None` for a special file.
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
            let (source, metadata) = read_file::open_exact(&path.below(root)).map_err(failed("read"))?;
            let executable = PRIVATE_MODE & (mode(&metadata) | 0o600);
            let (digest, bytes) = copied(source, &to, executable).map_err(failed("copy"))?;
            Entry::File { mode: mode(&metadata), modified: modified(&metadata), bytes, sha256: digest }
        }
    }))
}

/// Copies a file, and returns the digest and the size of what was copied.
fn copied(source: impl Read, to: &Path, mode: u32) -> io::Result<(Sha256Digest, u64)> {
    let mut hashing = Hashing { source, hasher: Sha256Hasher::default() };
    write::put_file(to, mode, &mut hashing)?;
    Ok(hashing.hasher.finish())
}

/// A reader that computes the digest of what it reads.
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

/// Reads the declared paths, without those below another one.
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
    paths.retain(|path| !all.iter().any(|other| other != path && path.is_in(other)));
    Ok(paths)
}
