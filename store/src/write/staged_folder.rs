//! A folder that is written under a temporary name and appears complete or not at all. It becomes a new folder, or replaces one.
//!
//! ```text
//! parent/.tmp-counterproof-<purpose>-<name>-<random>/      becomes the new folder parent/<name>
//! parent/.tmp-counterproof-<purpose>-<name>-<random>.lock  held by its writer
//! parent/.tmp-replace-<name>/                              replaces the folder parent/<name>
//! parent/.tmp-replace-<name>.lock                          held by its writer, the only one
//! ```
//!
//! A reader, or a crash at any time, finds the old folder or the new one. Some folders cannot be renamed: a mount point, the
//! working directory, and a folder in a parent that is not writable. Their new version is written into a folder inside of them,
//! and its entries are exchanged one by one at the end. A crash within these few renames can leave entries of both versions.

use std::fs;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use camino::{Utf8Path, Utf8PathBuf};

use super::folders::{create_folder, create_new_folder, parent_of, rename_folder, sync};
use super::leftovers::{lock_new_folder, remove_leftover_folders};
use super::site::SiteError;
use super::{TEMPORARY_PREFIX, WriteError, remove};
use crate::file_lock::FileLock;

/// Start of the name of an entry that is moved aside, where entries cannot be exchanged.
const ASIDE_PREFIX: &str = ".tmp-replaced-";

/// A folder under construction. Dropping it before [`StagedFolder::publish`] removes it, and leaves a folder that it was to replace
/// unchanged. What killed processes leave is removed by the next folder for the same purpose in the same parent, or by the next
/// replacement of the same folder.
///
/// ```
/// use counterproof_store::write::StagedFolder;
///
/// let parent = tempfile::tempdir()?;
/// let target = camino::Utf8Path::from_path(parent.path()).unwrap().join("run-1");
/// let mut staged = StagedFolder::new(&target, "copy")?;
/// assert!(staged.path().is_dir() && !target.exists());
/// staged.publish()?;
/// assert!(target.is_dir());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct StagedFolder {
    path: Utf8PathBuf,
    target: Utf8PathBuf,
    publication: Publication,
    /// True while the folder holds the old version with entries of the user.
    holds_foreign_entries: AtomicBool,
    /// Released after the folder is removed or has its final name.
    _locks: Vec<FileLock>,
}

/// How the folder gets its name.
#[derive(Debug)]
enum Publication {
    /// The target must not exist.
    New,
    /// Exchanges the folder with the target. Entries of the old version that are not its `own` are the user's, and stay.
    Exchange { own: Vec<String> },
    /// Exchanges the entries of the two folders.
    ExchangeEntries { own: Vec<String> },
}

impl StagedFolder {
    /// Creates an empty folder next to `target`, whose parent exists. `purpose` becomes a part of the temporary name.
    pub fn new(target: &Utf8Path, purpose: &str) -> Result<Self, WriteError> {
        let parent = parent_of(target);
        remove_leftover_folders(parent, purpose);
        let name = target.file_name().unwrap_or_default();
        let (path, lock) = lock_new_folder(parent, purpose, name).map_err(WriteError::at(target))?;
        // Owned before the folder is created, so that one whose sync fails is removed.
        let staged = Self {
            path,
            target: target.to_owned(),
            publication: Publication::New,
            holds_foreign_entries: AtomicBool::new(false),
            _locks: vec![lock],
        };
        create_new_folder(&staged.path)?;
        Ok(staged)
    }

    /// Creates a new version of the folder `target`, which may not exist yet. `own` are the names of the entries that belong to the
    /// old version; any other entry of the folder is moved to the new version.
    pub(super) fn replacing(target: &Utf8Path, own: &[&str]) -> Result<Self, SiteError> {
        let given = target;
        let busy = || SiteError::Busy(given.to_owned());
        let target = real_path(given)?;
        let mut locks = Vec::new();
        // Taken in both cases below, since two processes may see the same folder differently.
        let next_to_target = Names::next_to(&target);
        let is_parent_writable = match next_to_target.as_ref().map(|names| FileLock::try_lock(&names.lock)) {
            Some(Ok(Some(lock))) => {
                locks.push(lock);
                true
            }
            Some(Ok(None)) => return Err(busy()),
            // Other errors, such as a full disk, would meet the other method as well.
            Some(Err(error)) if !is_denied(&error) => return Err(WriteError::at(given)(error).into()),
            Some(Err(_)) | None => false,
        };
        let own = own.iter().map(|name| (*name).to_owned()).collect();
        let next_to_target = next_to_target.filter(|_| is_parent_writable && can_be_renamed(&target));
        let (names, publication) = if let Some(names) = next_to_target {
            (names, Publication::Exchange { own })
        } else {
            create_folder(&target)?;
            let names = Names::within(&target);
            let lock = FileLock::try_lock(&names.lock).map_err(WriteError::at(&names.lock))?;
            locks.push(lock.ok_or_else(busy)?);
            (names, Publication::ExchangeEntries { own })
        };
        let staged = Self {
            target,
            path: names.staging,
            publication,
            holds_foreign_entries: AtomicBool::new(false),
            _locks: locks,
        };
        staged.recover(&names.aside)?;
        fs::create_dir(&staged.path).map_err(WriteError::at(&staged.path))?;
        Ok(staged)
    }

    /// The temporary path, for filling the folder.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// The final path. Of a folder that is replaced, without symbolic links.
    pub fn target(&self) -> &Utf8Path {
        &self.target
    }

    /// Gives the folder its name, syncs the parent, and removes the version that it replaced.
    pub fn publish(self) -> Result<(), WriteError> {
        self.place()
    }

    /// Gives the folder its name as [`StagedFolder::publish`] does, and keeps its lock: a new folder can be withdrawn.
    pub fn place(&self) -> Result<(), WriteError> {
        match &self.publication {
            Publication::New => rename_folder(&self.path, &self.target)?,
            Publication::Exchange { own } => {
                self.exchange_folders()?;
                self.move_foreign_entries(own)?;
            }
            Publication::ExchangeEntries { own } => {
                self.exchange_entries(own)?;
                self.move_foreign_entries(own)?;
            }
        }
        sync(parent_of(&self.target))
    }

    /// Takes back a new folder that was placed: renames it to its temporary path.
    pub fn withdraw(&self) -> Result<(), WriteError> {
        rename_folder(&self.target, &self.path)?;
        sync(parent_of(&self.target))
    }

    fn exchange_folders(&self) -> Result<(), WriteError> {
        let Ok(old) = self.target.metadata() else { return rename_folder(&self.path, &self.target) };
        // A folder that is replaced keeps its mode: a report may be shared with a group, for example.
        fs::set_permissions(&self.path, old.permissions()).map_err(WriteError::at(&self.path))?;
        let aside = Names::next_to(&self.target).map_or_else(|| self.target.clone(), |names| names.aside);
        exchange(&self.path, &self.target, &aside)?;
        self.holds_foreign_entries.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn exchange_entries(&self, own: &[String]) -> Result<(), WriteError> {
        let mut names = names_in(&self.path)?;
        // Folders first and the first page last: it links to all others.
        names.sort_by_key(|name| (!self.path.join(name).is_dir(), name == "index.html", name.clone()));
        for name in &names {
            let (new, old) = (self.path.join(name), self.target.join(name));
            if old.symlink_metadata().is_ok() {
                exchange(&new, &old, &self.target.join(format!("{ASIDE_PREFIX}{name}")))?;
            } else {
                rename_folder(&new, &old)?;
            }
        }
        for name in names_in(&self.target)? {
            if own.contains(&name) && !names.contains(&name) {
                rename_folder(&self.target.join(&name), &self.path.join(&name))?;
            }
        }
        Ok(())
    }

    /// Moves what does not belong to the old version from the staging folder, which holds the old version, to the target.
    #[expect(
        clippy::disallowed_methods,
        reason = "the writer of paths that are UTF-8 cannot; the folder is synced below"
    )]
    fn move_foreign_entries(&self, own: &[String]) -> Result<(), WriteError> {
        // Names of any bytes: an entry that is skipped here is removed with the old version.
        let entries = match fs::read_dir(&self.path).and_then(Iterator::collect::<io::Result<Vec<_>>>) {
            // Nothing was replaced.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(WriteError::at(&self.path))?,
        };
        for entry in entries {
            let name = entry.file_name();
            let is_own = own.iter().any(|own| name == own.as_str())
                || name.as_encoded_bytes().starts_with(TEMPORARY_PREFIX.as_bytes());
            let to = self.target.as_std_path().join(&name);
            // An entry with the same name in the new version wins: it is newer.
            if !is_own && to.symlink_metadata().is_err() {
                fs::rename(self.path.as_std_path().join(&name), to).map_err(WriteError::at(&self.target))?;
            }
        }
        sync(&self.target)?;
        self.holds_foreign_entries.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Completes or removes what a killed process has left.
    fn recover(&self, aside: &Utf8Path) -> Result<(), WriteError> {
        // The caller holds the locks, so the process that left this is dead.
        let own = match &self.publication {
            Publication::New => return Ok(()),
            Publication::Exchange { own } => {
                // Killed before the last of its renames, the process left the old version aside, with entries of the user.
                if self.target.is_dir() && aside.is_dir() && self.path.symlink_metadata().is_err() {
                    rename_folder(aside, &self.path)?;
                }
                restore(aside, &self.target)?;
                own
            }
            Publication::ExchangeEntries { own } => {
                for name in names_in(&self.target)? {
                    if let Some(entry) = name.strip_prefix(ASIDE_PREFIX) {
                        restore(&self.target.join(&name), &self.target.join(entry))?;
                    }
                }
                own
            }
        };
        if self.path.symlink_metadata().is_ok() {
            // The process may have been killed between the exchange and the move of foreign entries.
            if self.target.is_dir() {
                self.move_foreign_entries(own)?;
            }
            remove_all(&self.path)?;
        }
        Ok(())
    }
}

impl Drop for StagedFolder {
    fn drop(&mut self) {
        if let Publication::Exchange { own } = &self.publication
            && self.holds_foreign_entries.load(Ordering::Relaxed)
            && self.move_foreign_entries(own).is_err()
        {
            // The user's entries stay here. The next replacement of the same folder moves them.
            return;
        }
        // Without publication, the new folder; after an exchange, the old version; after a rename, nothing has this name. The
        // caller reports why a folder was not published; a failed removal adds nothing.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The temporary names of a replacement.
pub(super) struct Names {
    pub(super) staging: Utf8PathBuf,
    lock: Utf8PathBuf,
    aside: Utf8PathBuf,
}

impl Names {
    /// The names in the parent of the target; `None` for the root of the file system.
    fn next_to(target: &Utf8Path) -> Option<Self> {
        Some(Self::new(target.parent()?, &format!("-{}", target.file_name()?)))
    }

    /// The names inside of a target that cannot be renamed.
    pub(super) fn within(target: &Utf8Path) -> Self {
        Self::new(target, "")
    }

    fn new(folder: &Utf8Path, suffix: &str) -> Self {
        let name = |kind: &str, end: &str| folder.join(format!("{TEMPORARY_PREFIX}{kind}{suffix}{end}"));
        Self { staging: name("replace", ""), lock: name("replace", ".lock"), aside: name("replaced", "") }
    }
}

/// The absolute path of a folder without symbolic links. Creates the missing parents.
fn real_path(target: &Utf8Path) -> Result<Utf8PathBuf, WriteError> {
    match target.canonicalize_utf8() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let parent = parent_of(target);
            create_folder(parent)?;
            let parent = parent.canonicalize_utf8().map_err(WriteError::at(parent))?;
            // `..` has no name; a path that ends with it exists if its parent does.
            Ok(parent.join(target.file_name().unwrap_or_default()))
        }
        path => path.map_err(WriteError::at(target)),
    }
}

/// The names of the entries that are UTF-8, as all of a version are. Others are the user's.
fn names_in(folder: &Utf8Path) -> Result<Vec<String>, WriteError> {
    let entries = folder.as_std_path().read_dir().map_err(WriteError::at(folder))?;
    let names = entries.map(|entry| entry.map(|entry| entry.file_name().into_string()));
    Ok(names.collect::<io::Result<Vec<_>>>().map_err(WriteError::at(folder))?.into_iter().flatten().collect())
}

/// Renames an old version that was moved aside back to its name, or removes it where that name is taken by the new version.
fn restore(aside: &Utf8Path, path: &Utf8Path) -> Result<(), WriteError> {
    match aside.symlink_metadata() {
        Err(_) => Ok(()),
        Ok(_) if path.symlink_metadata().is_err() => rename_folder(aside, path),
        Ok(found) if found.is_dir() => remove_all(aside),
        Ok(_) => remove(aside),
    }
}

fn remove_all(path: &Utf8Path) -> Result<(), WriteError> {
    fs::remove_dir_all(path).map_err(WriteError::at(path))
}

/// Whether the system lets the user write nothing there.
fn is_denied(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// Whether a rename of the folder is possible and harmless.
fn can_be_renamed(target: &Utf8Path) -> bool {
    // A shell or a server whose working directory is renamed away would stay in the old version, which is removed.
    let is_working_directory = std::env::current_dir()
        .and_then(|current| current.canonicalize())
        .is_ok_and(|current| current.starts_with(target.as_std_path()));
    !is_working_directory && !is_mount_point(target)
}

#[cfg(target_os = "linux")]
fn is_mount_point(target: &Utf8Path) -> bool {
    use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};

    // The attribute also identifies a bind mount of the same file system, where the device numbers are equal.
    statx(CWD, target.as_std_path(), AtFlags::empty(), StatxFlags::BASIC_STATS)
        .is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

#[cfg(all(unix, not(target_os = "linux")))]
fn is_mount_point(target: &Utf8Path) -> bool {
    use std::os::unix::fs::MetadataExt;

    let device = |path: &Utf8Path| path.metadata().map(|found| found.dev()).ok();
    target.is_dir() && device(target) != device(parent_of(target))
}

#[cfg(not(unix))]
fn is_mount_point(_target: &Utf8Path) -> bool {
    false
}

/// Exchanges two files or folders, or renames `new` to `old` with a stop at `aside` where the system cannot exchange them.
fn exchange(new: &Utf8Path, old: &Utf8Path, aside: &Utf8Path) -> Result<(), WriteError> {
    if exchange_at_once(new, old).map_err(WriteError::at(old))? {
        return Ok(());
    }
    rename_folder(old, aside)?;
    if let Err(error) = rename_folder(new, old) {
        // The old version comes back. If that fails too, the next replacement tries it again.
        let _ = rename_folder(aside, old);
        return Err(error);
    }
    rename_folder(aside, new)
}

/// Returns false where the system or the file system cannot exchange two entries.
#[cfg(target_os = "linux")]
fn exchange_at_once(new: &Utf8Path, old: &Utf8Path) -> io::Result<bool> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;

    match renameat_with(CWD, new.as_std_path(), CWD, old.as_std_path(), RenameFlags::EXCHANGE) {
        Ok(()) => Ok(true),
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn exchange_at_once(_new: &Utf8Path, _old: &Utf8Path) -> io::Result<bool> {
    Ok(false)
}

#[cfg(test)]
#[path = "staged_folder_tests.rs"]
mod tests;
