//! Restores a snapshot.

use std::collections::BTreeMap;
use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Sha256Digest;
use counterproof_store::{read_file, write};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_OMIT};
use serde::{Deserialize, Serialize};

use super::take::{Entry, FILES, Manifest, Modified, RawPath, replaced_parent, store};
use super::{SnapshotError, SnapshotRefusal, SnapshotStart};

const BEFORE: &str = "before-rollback-";

/// The mode bits that this process needs for a folder, and for a file.
const ACCESS: (u32, u32) = (0o700, 0o400);

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    pub restored: Vec<String>,
    pub removed: Vec<String>,
    /// Special files among the removed ones, of which no copy is kept.
    pub not_saved: Vec<String>,
    /// The folder with everything as it was before the rollback: the copies are in `files` below it. `None` in a plan, and if
    /// nothing differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved: Option<Utf8PathBuf>,
}

/// Returns what [`restore`] would change. Changes nothing.
pub fn plan(start: &SnapshotStart, limits: SnapshotLimits) -> Result<Result<Restored, SnapshotRefusal>, SnapshotError> {
    let manifest = Manifest::read(start)?;
    let now = match present(start, &manifest, limits)? {
        Ok(now) => now,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let differences = Differences::new(start.root.as_std_path(), &manifest, &now)?;
    Ok(Ok(describe(&differences, &now)))
}

/// Restores the declared paths byte for byte, with their modes, links and times of modification. Keeps a copy of what it changes.
///
/// After an interruption, a second call ends in the same state.
pub fn restore(
    start: &SnapshotStart,
    limits: SnapshotLimits,
) -> Result<Result<Restored, SnapshotRefusal>, SnapshotError> {
    let (manifest, root) = (Manifest::read(start)?, start.root.as_std_path());
    if let Some(parent) = replaced_parent(root, &manifest.declared)? {
        return Ok(Err(SnapshotRefusal::ParentReplaced(parent.to_string())));
    }
    // Leftovers of an earlier restore would count as new files, and be copied and listed as work of the execution.
    remove_leftovers(root, &manifest.declared);
    let mut opened = Vec::new();
    let Prepared { now, differences, restored } = match prepare(start, &manifest, limits, &mut opened) {
        Ok(Ok(prepared)) => prepared,
        not_possible => {
            // A refused restore leaves the tree as it was, also its modes.
            close(root, &opened);
            return not_possible.map(|refusal| refusal.map(|prepared| prepared.restored));
        }
    };
    apply(start, &manifest, &differences, &now)?;
    // Once for the whole tree: a restore that a crash interrupts is repeated.
    write::sync_tree(&start.root)?;
    Ok(Ok(restored))
}

struct Prepared {
    now: BTreeMap<RawPath, Found>,
    differences: Differences,
    restored: Restored,
}

/// Gets access, checks limits and copies, and saves what the restore changes. Adds the modes that it changes to `opened`.
fn prepare(
    start: &SnapshotStart,
    manifest: &Manifest,
    limits: SnapshotLimits,
    opened: &mut Vec<(RawPath, u32)>,
) -> Result<Result<Prepared, SnapshotRefusal>, SnapshotError> {
    let root = start.root.as_std_path();
    // The work may have removed its own access, for example with `chmod 000`.
    make_accessible(root, &manifest.declared, opened)?;
    let now = match present(start, manifest, limits)? {
        Ok(now) => now,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let differences = Differences::new(root, manifest, &now)?;
    let mut restored = describe(&differences, &now);
    if differences.has_content() {
        // Before anything is changed, so that a damaged snapshot changes nothing.
        check_copies(start, manifest, &differences)?;
        let folder = free_name(&start.folder);
        restored.saved = Some(store(&start.root, manifest.declared.clone(), &now, &folder)?.folder);
    }
    Ok(Ok(Prepared { now, differences, restored }))
}

fn present(
    start: &SnapshotStart,
    manifest: &Manifest,
    limits: SnapshotLimits,
) -> Result<Result<BTreeMap<RawPath, Found>, SnapshotRefusal>, SnapshotError> {
    let root = start.root.as_std_path();
    if let Some(parent) = replaced_parent(root, &manifest.declared)? {
        return Ok(Err(SnapshotRefusal::ParentReplaced(parent.to_string())));
    }
    match scan(root, &manifest.declared, limits) {
        Err(SnapshotError::TooLarge { limit }) => Ok(Err(SnapshotRefusal::TooLarge(limit))),
        found => found.map(Ok),
    }
}

fn describe(differences: &Differences, now: &BTreeMap<RawPath, Found>) -> Restored {
    let names = |paths: &[RawPath]| paths.iter().map(ToString::to_string).collect();
    let special = differences.removed.iter().filter(|path| now.get(path) == Some(&Found::Special));
    Restored {
        restored: names(&differences.restored),
        removed: names(&differences.removed),
        not_saved: special.map(ToString::to_string).collect(),
        saved: None,
    }
}

/// Removes unfinished files that an interrupted restore has left next to declared files.
fn remove_leftovers(root: &Path, declared: &[RawPath]) {
    for path in declared {
        if let Some(path) = Utf8Path::from_path(&path.below(root)) {
            write::remove_leftovers_next_to(path);
        }
    }
}

/// Gives this process access to everything at and below the declared paths. Adds each path with its earlier mode to `opened`,
/// parents before their children.
fn make_accessible(root: &Path, declared: &[RawPath], opened: &mut Vec<(RawPath, u32)>) -> Result<(), SnapshotError> {
    let mut open = declared.to_vec();
    while let Some(path) = open.pop() {
        let found = at(root, &path)?;
        let (mode, needed) = match found {
            Some(Found::Folder { mode, .. }) => (mode, ACCESS.0),
            Some(Found::File { mode, .. }) => (mode, ACCESS.1),
            _ => continue,
        };
        if mode & needed != needed {
            set_mode(&path.below(root), mode | needed).map_err(SnapshotError::io("get access to", &path))?;
            opened.push((path.clone(), mode));
        }
        if needed == ACCESS.0 {
            open.extend(children(root, &path)?);
        }
    }
    Ok(())
}

/// Gives paths their earlier modes back after a restore that is not possible. The reason for that is the error to report.
fn close(root: &Path, opened: &[(RawPath, u32)]) {
    // Children first: a folder without access hides what is below it.
    for (path, mode) in opened.iter().rev() {
        let _ = set_mode(&path.below(root), *mode);
    }
}

fn check_copies(start: &SnapshotStart, manifest: &Manifest, differences: &Differences) -> Result<(), SnapshotError> {
    let files = start.folder.join(FILES);
    for path in &differences.restored {
        if let Some(Entry::File { sha256, .. }) = manifest.entries.get(path)
            && !digest(&path.below(files.as_std_path()), path).is_ok_and(|found| found == *sha256)
        {
            let reason = format!("the copy of `{path}` was changed or removed");
            return Err(SnapshotError::Damaged { folder: start.folder.clone(), reason });
        }
    }
    Ok(())
}

fn free_name(folder: &Utf8Path) -> Utf8PathBuf {
    let mut names = (1_u64..).map(|number| folder.join(format!("{BEFORE}{number}")));
    names.find(|name| name.symlink_metadata().is_err()).unwrap_or_else(|| folder.join(BEFORE))
}

fn apply(
    start: &SnapshotStart,
    manifest: &Manifest,
    differences: &Differences,
    now: &BTreeMap<RawPath, Found>,
) -> Result<(), SnapshotError> {
    let (root, files) = (start.root.as_std_path(), start.folder.join(FILES));
    // Children first, because only empty folders can be removed.
    for path in differences.removed.iter().rev() {
        let absolute = path.below(root);
        let is_folder = matches!(now.get(path), Some(Found::Folder { .. }));
        let removed = if is_folder { fs::remove_dir(absolute) } else { fs::remove_file(absolute) };
        removed.map_err(SnapshotError::io("remove", path))?;
    }
    for path in &differences.restored {
        let Some(entry) = manifest.entries.get(path) else { continue };
        put(entry, &path.below(root), &path.below(files.as_std_path())).map_err(SnapshotError::io("restore", path))?;
    }
    // Folders last and from the inside: creating an entry changes the time of its folder, and a mode may forbid it.
    let folders = manifest.entries.iter().rev().filter(|(_, entry)| matches!(entry, Entry::Folder { .. }));
    let others = differences.restored.iter().chain(&differences.attributes);
    let others = others.filter_map(|path| Some((path, manifest.entries.get(path)?)));
    let others = others.filter(|(_, entry)| !matches!(entry, Entry::Folder { .. }));
    for (path, entry) in others.chain(folders) {
        set_attributes(entry, &path.below(root)).map_err(SnapshotError::io("set the mode and time of", path))?;
    }
    for parent in manifest.missing_parents.iter().rev() {
        // A folder that is not empty has files of others in it, and stays.
        let _ = fs::remove_dir(parent.below(root));
    }
    Ok(())
}

fn put(entry: &Entry, to: &Path, copy: &Path) -> io::Result<()> {
    // A folder above a declared path may be gone with everything in it.
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    match entry {
        Entry::Folder { .. } => fs::create_dir(to),
        Entry::Link { target, .. } => write::put_link(to, target.as_os_str()),
        Entry::File { mode, .. } => write::put_file(to, *mode, &mut read_file::open_exact(copy)?.0),
    }
}

fn set_attributes(entry: &Entry, path: &Path) -> io::Result<()> {
    match entry {
        Entry::File { mode, modified, .. } | Entry::Folder { mode, modified } => {
            set_mode(path, *mode)?;
            set_modified(path, *modified)
        }
        Entry::Link { modified, .. } => set_modified(path, *modified),
    }
}

fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(mode))
}

fn set_modified(path: &Path, modified: Modified) -> io::Result<()> {
    // The time of access is not part of a snapshot: reading the tree would change it.
    let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    let last_modification = Timespec { tv_sec: modified.seconds, tv_nsec: modified.nanoseconds };
    let times = Timestamps { last_access, last_modification };
    Ok(rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// The bits of a mode that are restored.
const MODE_BITS: u32 = 0o7777;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotLimits {
    pub bytes: u64,
    pub entries: u64,
}

impl Default for SnapshotLimits {
    fn default() -> Self {
        Self { bytes: 1 << 30, entries: 100_000 }
    }
}

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
        // Waiting entries count too, so a folder of millions of files ends the scan early.
        if (found.len() + open.len()) as u64 > limits.entries {
            return Err(SnapshotError::TooLarge { limit: format!("{} files and folders", limits.entries) });
        }
        if bytes > limits.bytes {
            return Err(SnapshotError::TooLarge { limit: format!("{} bytes", limits.bytes) });
        }
    }
    Ok(found)
}

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
            // Another kind is removed first: a file cannot be restored over a folder.
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
        // The size decides in most cases without reading the file. The time does not: a tool can set it back.
        (Entry::File { bytes, sha256, .. }, Found::File { bytes: now, .. }) if bytes == now => {
            Ok(digest(&path.below(root), path)? == *sha256)
        }
        // The entries of a folder are compared one by one.
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

pub(super) fn digest(absolute: &Path, path: &RawPath) -> Result<Sha256Digest, SnapshotError> {
    let read = || Sha256Digest::from_reader(read_file::open_exact(absolute)?.0);
    read().map(|(digest, _)| digest).map_err(SnapshotError::io("read", path))
}
